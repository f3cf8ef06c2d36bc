//! The tools that ask the MTA, against a server that serves real protobuf over HTTP.

mod arrivals;
mod compare;
mod fetching;
mod mta;
mod routes;
