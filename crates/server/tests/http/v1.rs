mod administration;
mod agents;
mod approvals;
mod assistants;
mod background;
mod bulk;
mod calls;
mod cancelling;
mod completions;
mod conversations;
mod exchange;
mod external_ids;
mod failures;
pub(crate) mod files;
mod keys;
mod live;
mod messages;
mod model;
mod names;
mod openai;
mod records;
mod repeats;
mod resent;
mod responses;
mod runs;
mod search;
mod shutdown_timed_out;
mod streams;
mod threads;
mod turns;

pub(crate) use model::{
    Echo, LengthEmbedder, config_with_model, start_with_model, start_with_model_on_postgres, start_with_model_on_redis,
    start_with_model_on_redis_cluster,
};
