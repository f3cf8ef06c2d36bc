//! Tests of `Memory` on the in-memory store, SQLite, PostgreSQL, and `FaultyStore`, which injects all faults that the store contract
//! allows. S1.09, S1.40

#[cfg(test)]
mod analytics;
#[cfg(test)]
mod append;
#[cfg(test)]
mod branches;
#[cfg(test)]
mod context;
#[cfg(test)]
mod context_state;
#[cfg(test)]
mod derived;
#[cfg(test)]
mod edit;
#[cfg(test)]
mod embedder;
#[cfg(test)]
mod erase;
#[cfg(test)]
mod erasures;
#[cfg(test)]
mod exchange;
#[cfg(test)]
mod faulty_maintenance;
#[cfg(test)]
mod library;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod migrate;
#[cfg(test)]
mod model_summaries;
#[cfg(test)]
mod own_commits;
#[cfg(test)]
mod preferences;
#[cfg(test)]
mod prefetch;
#[cfg(test)]
mod probe;
#[cfg(test)]
mod recall;
#[cfg(test)]
mod recall_provenance;
#[cfg(test)]
mod recalled_context;
#[cfg(test)]
mod records;
#[cfg(test)]
mod retention;
#[cfg(test)]
mod search;
#[cfg(test)]
mod separate_runtime;
#[cfg(test)]
mod subscribe;
#[cfg(test)]
mod sweep;
#[cfg(test)]
mod test_env;
#[cfg(test)]
mod thread_cache;
#[cfg(test)]
mod threads;
#[cfg(test)]
mod titles;
#[cfg(test)]
mod token_counts;
#[cfg(test)]
mod turns;
