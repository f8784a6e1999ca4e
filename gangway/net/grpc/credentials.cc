#include "gangway/net/grpc/credentials.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_certificate_verifier.h"
#include "grpcpp/security/tls_credentials_options.h"

namespace gangway::net {
namespace {

class OneCertificate final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  explicit OneCertificate(std::string certificate) : certificate_(std::move(certificate)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* status) override {
    const grpc::string_ref shown = request->peer_cert();
    const bool same = FirstCertificate({shown.data(), shown.size()}) == certificate_;
    *status = same ? grpc::Status::OK
                   : grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "the peer shows another certificate than its own");
    return true;
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {}

 private:
  const std::string certificate_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> ServerCredentials(const Tls& tls) {
  if (tls.empty()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = tls.authorities;
  options.pem_key_cert_pairs.push_back({tls.key, tls.certificate});
  return grpc::SslServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> ChannelCredentials(const Tls& tls) {
  if (tls.empty()) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({tls.authorities, tls.key, tls.certificate});
}

std::shared_ptr<grpc::ChannelCredentials> PinnedCredentials(const Tls& tls, std::string certificate) {
  if (tls.empty()) return grpc::InsecureChannelCredentials();
  using grpc::experimental::ExternalCertificateVerifier;
  const std::vector<grpc::experimental::IdentityKeyCertPair> own = {{tls.key, tls.certificate}};
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(
      std::make_shared<grpc::experimental::StaticDataCertificateProvider>(tls.authorities, own));
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(ExternalCertificateVerifier::Create<OneCertificate>(std::move(certificate)));
  options.set_check_call_host(false);
  return grpc::experimental::TlsCredentials(options);
}

std::string FirstCertificate(absl::string_view pem) {
  constexpr absl::string_view kBegin = "-----BEGIN CERTIFICATE-----", kEnd = "-----END CERTIFICATE-----";
  const size_t begin = pem.find(kBegin);
  if (begin == absl::string_view::npos) return "";
  pem.remove_prefix(begin + kBegin.size());
  std::string bytes;  // base64, without its line breaks
  for (const char c : pem.substr(0, pem.find(kEnd))) {
    if (!absl::ascii_isspace(c)) bytes += c;
  }
  return bytes;
}

}  // namespace gangway::net
