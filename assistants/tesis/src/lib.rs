//! The legal research assistant: Mexican case law, in Spanish.
//!
//! [`Corpus`] holds tesis, articles of statutes and passages of decisions in the tenant's search index;
//! [`Corpus::import`] fills it. [`TesisAssistant`] answers from it: it classifies a message ([`intent`]), reuses the
//! sources of the conversation or searches, and cites only what it was given. [`run_agent`] answers a question for a
//! program that has a memory but no agent, and stores question and answer in one commit. [`PLUGIN`] registers the
//! assistant with a program.
#![warn(missing_docs)]

mod answer;
mod assistant;
mod briefing;
mod citations;
mod clave;
mod commands;
mod corpus;
mod english;
mod epoca;
mod filters;
mod graph;
mod history;
mod import;
pub mod intent;
mod offline;
mod plan;
mod plugin;
mod record;
mod reference;
mod report;
mod run;
mod search;
mod spelling;
mod statute;
mod thesaurus;
mod tool;

pub use assistant::{TesisAssistant, TesisOptions};
pub use citations::remove_unknown_citations;
pub use clave::{ClaveKey, References};
pub use corpus::{Article, Corpus, CorpusDescription, Item, Passage};
pub use filters::{Exclusions, Filters};
pub use history::{HistoricalSource, extract_discussed_tesis, extract_historical_sources, past_messages};
pub use import::{ImportError, ImportReport, ImportRequest, ReadError};
pub use offline::OfflineTesis;
pub use plugin::PLUGIN;
pub use record::{RecordError, Tesis, Tipo};
pub use run::run_agent;
pub use search::{FoundItem, SearchRequest, rank_score};
pub use threadkeep::agent::{RunError, RunRequest, RunResult};
