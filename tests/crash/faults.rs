//! Every call fails once.
