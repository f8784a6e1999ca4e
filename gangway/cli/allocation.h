// How the executable keeps memory that was freed (decision 16).
#pragma once

namespace gangway::cli {

// Large memory, that of arrays above all, has an arena of its own: on huge pages, and kept for a second after it was
// freed. A program's temporaries are of the same sizes in every step; fresh from the system they take longer to be
// mapped, page by page, than most operations take to fill them. More than the system has is not given. Before there are
// threads; nothing with another allocator than jemalloc.
void KeepLargeMemory();

}  // namespace gangway::cli
