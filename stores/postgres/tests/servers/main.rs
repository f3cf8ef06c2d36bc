//! Tests specific to a store on a server: access to rows, schema migrations, several instances on one database, and commits
//! during server crashes and connection failures.

#[cfg(test)]
mod batching;
#[cfg(test)]
mod collections;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod erasure;
#[cfg(test)]
mod failover;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod former;
#[cfg(test)]
mod instances;
#[cfg(test)]
mod outages;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod scopes;
#[cfg(test)]
mod snapshots;
#[cfg(test)]
mod supabase;
#[cfg(test)]
mod support;
