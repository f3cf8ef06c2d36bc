//! What only a store on a server must show: who sees which rows, how the schema comes to be, that several instances are
//! one, and what becomes of commits when servers die and connections are cut.

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
mod batching;
#[cfg(test)]
mod former;
#[cfg(test)]
mod support;
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
