module @allops attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%f: tensor<4x8xf32>, %g: tensor<4x8xf32>, %i: tensor<4x8xi32>, %u: tensor<4x8xui32>, %p: tensor<4x8xi1>, %s: tensor<f32>, %si: tensor<i32>, %c: tensor<4x8xcomplex<f32>>, %img: tensor<2x8x8x3xf32>, %ker: tensor<3x3x3x4xf32>, %sq: tensor<4x4xf32>)
     -> (tensor<4x8xf32>, tensor<4x8xi32>, tensor<4x8xi1>, tensor<4x8xcomplex<f32>>, tensor<f32>) {
    %a0 = stablehlo.abs %f : tensor<4x8xf32>
    %a1 = stablehlo.add %a0, %g : tensor<4x8xf32>
    %a2 = stablehlo.atan2 %a1, %g : tensor<4x8xf32>
    %a3 = stablehlo.cbrt %a2 : tensor<4x8xf32>
    %a4 = stablehlo.ceil %a3 : tensor<4x8xf32>
    %a5 = stablehlo.cosine %a4 : tensor<4x8xf32>
    %a6 = stablehlo.divide %a5, %g : tensor<4x8xf32>
    %a7 = stablehlo.exponential %a6 : tensor<4x8xf32>
    %a8 = stablehlo.exponential_minus_one %a7 : tensor<4x8xf32>
    %a9 = stablehlo.floor %a8 : tensor<4x8xf32>
    %a10 = stablehlo.log %a9 : tensor<4x8xf32>
    %a11 = stablehlo.log_plus_one %a10 : tensor<4x8xf32>
    %a12 = stablehlo.logistic %a11 : tensor<4x8xf32>
    %a13 = stablehlo.maximum %a12, %g : tensor<4x8xf32>
    %a14 = stablehlo.minimum %a13, %g : tensor<4x8xf32>
    %a15 = stablehlo.multiply %a14, %g : tensor<4x8xf32>
    %a16 = stablehlo.negate %a15 : tensor<4x8xf32>
    %a17 = stablehlo.power %a16, %g : tensor<4x8xf32>
    %a18 = stablehlo.remainder %a17, %g : tensor<4x8xf32>
    %a19 = stablehlo.round_nearest_afz %a18 : tensor<4x8xf32>
    %a20 = stablehlo.round_nearest_even %a19 : tensor<4x8xf32>
    %a21 = stablehlo.rsqrt %a20 : tensor<4x8xf32>
    %a22 = stablehlo.sign %a21 : tensor<4x8xf32>
    %a23 = stablehlo.sine %a22 : tensor<4x8xf32>
    %a24 = stablehlo.sqrt %a23 : tensor<4x8xf32>
    %a25 = stablehlo.subtract %a24, %g : tensor<4x8xf32>
    %a26 = stablehlo.tanh %a25 : tensor<4x8xf32>
    %a27 = stablehlo.reduce_precision %a26, format = e5m10 : tensor<4x8xf32>
    %lo = stablehlo.constant dense<0.0> : tensor<f32>
    %hi = stablehlo.constant dense<1.0> : tensor<f32>
    %a28 = stablehlo.clamp %lo, %a27, %hi : (tensor<f32>, tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %fin = stablehlo.is_finite %a28 : (tensor<4x8xf32>) -> tensor<4x8xi1>
    %cmp = stablehlo.compare LT, %a28, %g, TOTALORDER : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %n0 = stablehlo.and %fin, %cmp : tensor<4x8xi1>
    %n1 = stablehlo.or %n0, %p : tensor<4x8xi1>
    %n2 = stablehlo.xor %n1, %p : tensor<4x8xi1>
    %n3 = stablehlo.not %n2 : tensor<4x8xi1>
    %sel = stablehlo.select %n3, %a28, %g : tensor<4x8xi1>, tensor<4x8xf32>
    %sp = stablehlo.constant dense<true> : tensor<i1>
    %sel2 = stablehlo.select %sp, %sel, %g : tensor<i1>, tensor<4x8xf32>
    %i0 = stablehlo.count_leading_zeros %i : tensor<4x8xi32>
    %i1 = stablehlo.popcnt %i0 : tensor<4x8xi32>
    %i2 = stablehlo.shift_left %i1, %i : tensor<4x8xi32>
    %i3 = stablehlo.shift_right_arithmetic %i2, %i : tensor<4x8xi32>
    %i4 = stablehlo.shift_right_logical %i3, %i : tensor<4x8xi32>
    %bc = stablehlo.bitcast_convert %u : (tensor<4x8xui32>) -> tensor<4x8xi32>
    %i5 = stablehlo.add %i4, %bc : tensor<4x8xi32>
    %cv = stablehlo.convert %i5 : (tensor<4x8xi32>) -> tensor<4x8xf32>
    %re = stablehlo.real %c : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xf32>
    %im = stablehlo.imag %c : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xf32>
    %rr = stablehlo.real %re : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %ri = stablehlo.imag %re : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %cx = stablehlo.complex %rr, %im : tensor<4x8xcomplex<f32>>
    %cr = stablehlo.convert %cx : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xf32>
    %s1 = stablehlo.add %sel2, %cv : tensor<4x8xf32>
    %s2 = stablehlo.add %s1, %ri : tensor<4x8xf32>
    %s3 = stablehlo.add %s2, %cr : tensor<4x8xf32>
    // data movement
    %io = stablehlo.iota dim = 1 : tensor<4x8xf32>
    %b0 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<4x8xf32>
    %k = stablehlo.constant dense<[[1.0],[2.0],[3.0],[4.0]]> : tensor<4x1xf32>
    %b1 = stablehlo.broadcast_in_dim %k, dims = [0, 1] : (tensor<4x1xf32>) -> tensor<4x8xf32>
    %b2 = stablehlo.broadcast %s, sizes = [4, 8] : (tensor<f32>) -> tensor<4x8xf32>
    %cat = stablehlo.concatenate %b0, %b1, dim = 0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    %slc = stablehlo.slice %cat [0:8:2, 0:8] : (tensor<8x8xf32>) -> tensor<4x8xf32>
    %pad = stablehlo.pad %slc, %s, low = [1, -1], high = [0, 1], interior = [1, 0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8x8xf32>
    %rsh = stablehlo.reshape %pad : (tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %tr = stablehlo.transpose %rsh, dims = [0, 2, 1] : (tensor<2x4x8xf32>) -> tensor<2x8x4xf32>
    %rv = stablehlo.reverse %tr, dims = [0, 2] : tensor<2x8x4xf32>
    %red = stablehlo.reduce(%rv init: %lo) applies stablehlo.add across dimensions = [0] : (tensor<2x8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
    %tr2 = stablehlo.transpose %red, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
    %z0 = stablehlo.constant dense<0> : tensor<i32>
    %ds = stablehlo.dynamic_slice %tr2, %si, %z0, sizes = [2, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<2x8xf32>
    %dus = stablehlo.dynamic_update_slice %tr2, %ds, %si, %z0 : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
    %idx = stablehlo.constant dense<[[0],[2],[1],[3]]> : tensor<4x1xi32>
    %ga = "stablehlo.gather"(%dus, %idx) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>, indices_are_sorted = false}> : (tensor<4x8xf32>, tensor<4x1xi32>) -> tensor<4x8xf32>
    %sc = "stablehlo.scatter"(%ga, %idx, %g) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = true}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %t = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %t : tensor<f32>
    }) : (tensor<4x8xf32>, tensor<4x1xi32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    // dot, conv, windows
    %d0 = stablehlo.dot_general %sq, %sc, contracting_dims = [1] x [0], precision = [HIGHEST, DEFAULT] : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %d1 = stablehlo.dot %sq, %d0 : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %d2 = "stablehlo.einsum"(%sq, %d1) <{einsum_config = "ab,bc->ac"}> : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %ue = "stablehlo.unary_einsum"(%d2) <{einsum_config = "ab->a"}> : (tensor<4x8xf32>) -> tensor<4xf32>
    %cvn = stablehlo.convolution(%img, %ker) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 0]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<2x8x8x4xf32>
    %rw = "stablehlo.reduce_window"(%cvn, %lo) <{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %t = stablehlo.maximum %x, %y : tensor<f32>
        stablehlo.return %t : tensor<f32>
    }) : (tensor<2x8x8x4xf32>, tensor<f32>) -> tensor<2x4x4x4xf32>
    %sas = "stablehlo.select_and_scatter"(%cvn, %rw, %lo) <{window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %t = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %t : tensor<i1>
    }, {
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %t = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %t : tensor<f32>
    }) : (tensor<2x8x8x4xf32>, tensor<2x4x4x4xf32>, tensor<f32>) -> tensor<2x8x8x4xf32>
    %mp = "stablehlo.map"(%d2, %g) <{dimensions = array<i64: 0, 1>}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %t = stablehlo.multiply %x, %y : tensor<f32>
        stablehlo.return %t : tensor<f32>
    }) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %srt:2 = "stablehlo.sort"(%mp, %i5) <{dimension = -1 : i64, is_stable = true}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>, %x2: tensor<i32>, %y2: tensor<i32>):
        %t = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %t : tensor<i1>
    }) : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xi32>)
    %tis = "stablehlo.torch_index_select"(%srt#0, %si) <{dim = 0 : i64, batch_dims = 0 : i64}> : (tensor<4x8xf32>, tensor<i32>) -> tensor<8xf32>
    %tisb = stablehlo.broadcast_in_dim %tis, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
    %argmax:2 = stablehlo.reduce(%srt#0 init: %lo), (%srt#1 init: %z0) across dimensions = [1] : (tensor<4x8xf32>, tensor<4x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
     reducer(%x: tensor<f32>, %y: tensor<f32>) (%x2: tensor<i32>, %y2: tensor<i32>) {
        %t = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %v = stablehlo.select %t, %x, %y : tensor<i1>, tensor<f32>
        %w = stablehlo.select %t, %x2, %y2 : tensor<i1>, tensor<i32>
        stablehlo.return %v, %w : tensor<f32>, tensor<i32>
     }
    // control flow
    %one = stablehlo.constant dense<1> : tensor<i32>
    %ten = stablehlo.constant dense<10> : tensor<i32>
    %wh:2 = stablehlo.while(%it = %z0, %acc = %tisb) : tensor<i32>, tensor<4x8xf32>
      cond {
        %t = stablehlo.compare LT, %it, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %t : tensor<i1>
      } do {
        %n = stablehlo.add %it, %one : tensor<i32>
        %m = stablehlo.add %acc, %g : tensor<4x8xf32>
        stablehlo.return %n, %m : tensor<i32>, tensor<4x8xf32>
      }
    %pr = stablehlo.compare LT, %si, %ten : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %iff = "stablehlo.if"(%pr) ({
        %t = stablehlo.add %wh#1, %g : tensor<4x8xf32>
        stablehlo.return %t : tensor<4x8xf32>
      }, {
        stablehlo.return %wh#1 : tensor<4x8xf32>
      }) : (tensor<i1>) -> tensor<4x8xf32>
    %cs:2 = "stablehlo.case"(%si) ({
        stablehlo.return %iff, %one : tensor<4x8xf32>, tensor<i32>
      }, {
        %t = stablehlo.add %iff, %g : tensor<4x8xf32>
        stablehlo.return %t, %ten : tensor<4x8xf32>, tensor<i32>
      }, {
        stablehlo.return %g, %wh#0 : tensor<4x8xf32>, tensor<i32>
      }) : (tensor<i32>) -> (tensor<4x8xf32>, tensor<i32>)
    %cl = func.call @helper(%cs#0, %g) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %ob:2 = stablehlo.optimization_barrier %cl, %g : tensor<4x8xf32>, tensor<4x8xf32>
    %tup = stablehlo.tuple %ob#0, %i5 : tuple<tensor<4x8xf32>, tensor<4x8xi32>>
    %gte = stablehlo.get_tuple_element %tup[0] : (tuple<tensor<4x8xf32>, tensor<4x8xi32>>) -> tensor<4x8xf32>
    // collectives
    %ar = "stablehlo.all_reduce"(%gte) <{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %t = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %t : tensor<f32>
    }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %ag = "stablehlo.all_gather"(%ar) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, use_global_device_ids}> : (tensor<4x8xf32>) -> tensor<4x16xf32>
    %rs = "stablehlo.reduce_scatter"(%ag) <{scatter_dimension = 1 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, use_global_device_ids}> ({
      ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %t = stablehlo.add %x, %y : tensor<f32>
        stablehlo.return %t : tensor<f32>
    }) : (tensor<4x16xf32>) -> tensor<4x8xf32>
    %aa = "stablehlo.all_to_all"(%rs) <{split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 4, type = 1>}> : (tensor<4x8xf32>) -> tensor<8x4xf32>
    %aar = stablehlo.reshape %aa : (tensor<8x4xf32>) -> tensor<4x8xf32>
    %cp = "stablehlo.collective_permute"(%aar) <{source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 5, type = 1>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %crs = "stablehlo.cross-replica-sum"(%cp) <{replica_groups = dense<[[0]]> : tensor<1x1xi64>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %pid = stablehlo.partition_id : tensor<ui32>
    %rid = stablehlo.replica_id : tensor<ui32>
    // numeric
    %sh = stablehlo.constant dense<[4, 8]> : tensor<2xi64>
    %rg = stablehlo.rng %lo, %hi, %sh, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<4x8xf32>
    %st = stablehlo.constant dense<[1, 2]> : tensor<2xui64>
    %rbg:2 = stablehlo.rng_bit_generator %st, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4x8xui32>)
    %fft = stablehlo.fft %c, type = FFT, length = [8] : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
    %ch = stablehlo.cholesky %sq, lower = true : tensor<4x4xf32>
    %ts = "stablehlo.triangular_solve"(%ch, %crs) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>}> : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %v8 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %bt:3 = "stablehlo.batch_norm_training"(%ts, %v8, %v8) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
    %bi = "stablehlo.batch_norm_inference"(%bt#0, %v8, %v8, %v8, %v8) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %bg:3 = "stablehlo.batch_norm_grad"(%bi, %v8, %v8, %v8, %g) <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}> : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
    // effects
    %tk = stablehlo.create_token : !stablehlo.token
    %tk1 = stablehlo.after_all %tk, %tk : !stablehlo.token
    %tk2 = "stablehlo.send"(%bg#0, %tk1) <{channel_handle = #stablehlo.channel_handle<handle = 6, type = 2>, is_host_transfer = true}> : (tensor<4x8xf32>, !stablehlo.token) -> !stablehlo.token
    %rc:2 = "stablehlo.recv"(%tk2) <{channel_handle = #stablehlo.channel_handle<handle = 7, type = 3>, is_host_transfer = true}> : (!stablehlo.token) -> (tensor<4x8xf32>, !stablehlo.token)
    %inf:3 = "stablehlo.infeed"(%rc#1) <{infeed_config = "cfg"}> : (!stablehlo.token) -> (tensor<4x8xf32>, tensor<i32>, !stablehlo.token)
    %tk3 = "stablehlo.outfeed"(%rc#0, %inf#1, %inf#2) <{outfeed_config = "cfg"}> : (tensor<4x8xf32>, tensor<i32>, !stablehlo.token) -> !stablehlo.token
    %cc = stablehlo.custom_call @foreign(%inf#0, %g) {backend_config = "opaque", has_side_effect = true, operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<[1, 0]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>], mhlo.sharding = "{devices=[2,2]<=[4]}"} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %gds = stablehlo.get_dimension_size %cc, dim = 1 : (tensor<4x8xf32>) -> tensor<i32>
    // shape operands that are constants
    %shp = stablehlo.constant dense<[8, 4]> : tensor<2xi64>
    %dr = stablehlo.dynamic_reshape %cc, %shp : (tensor<4x8xf32>, tensor<2xi64>) -> tensor<8x4xf32>
    %di = stablehlo.dynamic_iota %shp, dim = 0 : (tensor<2xi64>) -> tensor<8x4xf32>
    %dd = stablehlo.add %dr, %di : tensor<8x4xf32>
    %l2 = stablehlo.constant dense<[0, 0]> : tensor<2xi64>
    %h2 = stablehlo.constant dense<[0, 4]> : tensor<2xi64>
    %dp = stablehlo.dynamic_pad %dd, %s, %l2, %h2, %l2 : (tensor<8x4xf32>, tensor<f32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<8x8xf32>
    %lim = stablehlo.constant dense<[4, 8]> : tensor<2xi64>
    %str = stablehlo.constant dense<[1, 1]> : tensor<2xi64>
    %rds = stablehlo.real_dynamic_slice %dp, %l2, %lim, %str : (tensor<8x8xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<4x8xf32>
    %dbi = "stablehlo.dynamic_broadcast_in_dim"(%s, %lim) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<2xi64>) -> tensor<4x8xf32>
    %ssz = stablehlo.constant dense<[1, 8]> : tensor<2xi64>
    %dga = "stablehlo.dynamic_gather"(%dbi, %idx, %ssz) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}> : (tensor<4x8xf32>, tensor<4x1xi32>, tensor<2xi64>) -> tensor<4x8xf32>
    %f0 = stablehlo.add %rds, %dga : tensor<4x8xf32>
    %f1 = stablehlo.add %f0, %s3 : tensor<4x8xf32>
    %f2 = stablehlo.add %f1, %io : tensor<4x8xf32>
    %f3 = stablehlo.add %f2, %b2 : tensor<4x8xf32>
    %f4 = stablehlo.add %f3, %rg : tensor<4x8xf32>
    return %f4, %i5, %n3, %fft, %s : tensor<4x8xf32>, tensor<4x8xi32>, tensor<4x8xi1>, tensor<4x8xcomplex<f32>>, tensor<f32>
  }
  func.func private @helper(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = stablehlo.multiply %x, %y : tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}
