//! The conversation manager over the reference store, over SQLite, and over `Weak`, which makes use of every weakness that
//! the contract allows. S1.09, S1.40

#[cfg(test)]
mod analytics;
#[cfg(test)]
mod append;
#[cfg(test)]
mod context;
#[cfg(test)]
mod counts;
#[cfg(test)]
mod edit;
#[cfg(test)]
mod erase;
#[cfg(test)]
mod exchange;
#[cfg(test)]
mod library;
#[cfg(test)]
mod meaning;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod preferences;
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
mod threads;
#[cfg(test)]
mod titles;
#[cfg(test)]
mod world;
