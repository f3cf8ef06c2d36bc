mod agents;
mod approvals;
mod assistants;
mod background;
mod cancelling;
mod conversations;
mod documents;
mod exchange;
mod live;
mod messages;
mod model;
mod repeats;
mod responses;
mod search;
mod streams;
mod threads;

pub(crate) use model::{Echo, Lengths, parts_with_model, with_model, with_model_over_postgres};
