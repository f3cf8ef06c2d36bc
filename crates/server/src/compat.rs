//! The documents' own endpoints.
