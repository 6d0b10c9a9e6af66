//! Cases that once failed, kept by name.
