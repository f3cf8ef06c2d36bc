//! One list of cases that every store runs whole.
