mod documents;
mod exchange;
mod live;
mod messages;
mod repeats;
mod search;
mod threads;
