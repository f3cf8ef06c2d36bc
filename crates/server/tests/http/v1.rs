mod agents;
mod approvals;
mod assistants;
mod background;
mod completions;
mod conversations;
mod documents;
mod exchange;
mod live;
mod messages;
mod model;
mod repeats;
mod responses;
mod search;
mod threads;
mod wire;

pub(crate) use model::{Echo, parts_with_model, with_model, with_model_over_postgres};
