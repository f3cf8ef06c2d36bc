//! The conversation manager over the reference store, over SQLite, over PostgreSQL, and over `FaultyStore`, which makes use of every weakness that
//! the contract allows. S1.09, S1.40

#[cfg(test)]
mod analytics;
#[cfg(test)]
mod append;
#[cfg(test)]
mod branches;
#[cfg(test)]
mod carried;
#[cfg(test)]
mod context;
#[cfg(test)]
mod counts;
#[cfg(test)]
mod derived;
#[cfg(test)]
mod edit;
#[cfg(test)]
mod elsewhere;
#[cfg(test)]
mod erase;
#[cfg(test)]
mod erasures;
#[cfg(test)]
mod exchange;
#[cfg(test)]
mod handed;
#[cfg(test)]
#[cfg(test)]
mod library;
#[cfg(test)]
mod maintenance;
#[cfg(test)]
mod meaning;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod migrate;
#[cfg(test)]
mod preferences;
#[cfg(test)]
mod prefetch;
#[cfg(test)]
mod probe;
#[cfg(test)]
mod recall;
#[cfg(test)]
mod recalled_context;
#[cfg(test)]
mod retention;
#[cfg(test)]
mod search;
#[cfg(test)]
mod subscribe;
#[cfg(test)]
mod sweep;
#[cfg(test)]
mod tails;
#[cfg(test)]
mod threads;
#[cfg(test)]
mod titles;
#[cfg(test)]
mod turns;
#[cfg(test)]
mod world;
#[cfg(test)]
mod written;
