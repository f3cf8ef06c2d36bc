//! Data written by released versions. Every later version must read it.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use threadkeep_core::exchange::{ExportedMessage, ExportedThread};
use threadkeep_core::{Batch, Content, Dump, IdempotencyKey, PutRecord, Role, Thread};
use uuid::Uuid;

use crate::cases::{TEXTS, full_content, thread_with_history};
use crate::client::Client;
use crate::conversation::Conversation;
use crate::fixtures::{acme, ana, app, appending, at, batch, message_with, put, record_name, system, user_message};
use crate::run::TestStore;
use crate::{Factory, Instance};

/// The dump of a thread and the expected result of reading it.
pub(crate) struct Golden {
    pub(crate) name: &'static str,
    dump: &'static str,
    expected: &'static str,
}

macro_rules! golden {
    ($($version:literal / $name:literal),+ $(,)?) => {
        &[$(Golden {
            name: concat!($version, "/", $name),
            dump: include_str!(concat!("../golden/", $version, "/", $name, ".dump.json")),
            expected: include_str!(concat!("../golden/", $version, "/", $name, ".expected.json")),
        }),+]
    };
}

/// All golden files. Each new format adds files; existing ones are never changed or removed.
pub(crate) const GOLDEN: &[Golden] =
    golden!["v1" / "eventful", "v1" / "content", "v1" / "texts", "v2" / "eventful", "v2" / "content", "v2" / "texts"];

/// What reading a thread returns.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ThreadContents {
    pub(crate) thread: ExportedThread,
    pub(crate) messages: Vec<ExportedMessage>,
}

impl Golden {
    pub(crate) fn dump(&self) -> Vec<Dump> {
        serde_json::from_str(self.dump).expect("cannot parse a golden dump")
    }

    pub(crate) fn expected(&self) -> ThreadContents {
        serde_json::from_str(self.expected).expect("cannot parse the expected contents of a golden dump")
    }
}

/// Reads a thread and all its messages.
pub(crate) async fn read(conversation: &Conversation) -> ThreadContents {
    let now = at(500);
    let messages = conversation.messages(now).await.into_iter().map(ExportedMessage::from).collect();
    ThreadContents { thread: exported(conversation.thread(now).await), messages }
}

fn exported(thread: Thread) -> ExportedThread {
    let Thread { id, owner, key, title, metadata, state, created_at, expires_at, .. } = thread;
    ExportedThread { id, owner, key, title, metadata, state, created_at, expires_at }
}

/// Writes the golden files of the current format to a folder. Only for a format that has no golden files yet.
///
/// # Errors
/// If a file exists already or cannot be written.
pub async fn write_golden(factory: &dyn Factory, folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for name in ["eventful", "content", "texts"] {
        let instance: Box<dyn Instance> = factory.create().await;
        let store = TestStore::new(instance, None);
        let conversation = write_thread(&store.client, name).await;
        write_new(&folder.join(format!("{name}.dump.json")), &conversation.dump(4).await)?;
        write_new(&folder.join(format!("{name}.expected.json")), &read(&conversation).await)?;
    }
    Ok(())
}

async fn write_thread(client: &Client, name: &str) -> Conversation {
    if name == "eventful" {
        return thread_with_history(client).await;
    }
    if name == "content" {
        return write_content_thread(client).await;
    }
    let conversation = Conversation::open(client, &ana(), 1, at(0)).await;
    let texts = (1..).zip(TEXTS).map(|(number, text)| user_message(number, text)).collect();
    conversation.commit(&appending(texts), at(100)).await;
    let lease = PutRecord { expires_at: Some(at(1_000_000)), ..put(system("run"), "lease", "1") };
    let with_generated_key = Batch {
        key: IdempotencyKey::Generated(Uuid::from_u128(0x5000_0000_0000_0000_0000)),
        put: vec![lease, put(app("notes"), "deleted-later", "2")],
        ..batch("generated")
    };
    conversation.commit(&with_generated_key, at(101)).await;
    conversation
        .commit(&Batch { delete: vec![record_name(app("notes"), "deleted-later")], ..batch("delete") }, at(102))
        .await;
    conversation
}

/// Writes a thread that the users of a tenant share, with every kind of content.
async fn write_content_thread(client: &Client) -> Conversation {
    let conversation = Conversation::open(client, &acme(), 1, at(0)).await;
    let plain = Role::ALL.map(|role| Content::text(role, "plain"));
    let contents = [full_content()].into_iter().chain(plain).chain(Role::ALL.map(Content::empty));
    let messages = (1..).zip(contents).map(|(number, content)| message_with(number, content)).collect();
    conversation.commit(&appending(messages), at(100)).await;
    conversation
}

fn write_new<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    let file = std::fs::File::create_new(path)?;
    serde_json::to_writer_pretty(&file, value)?;
    io::Write::write_all(&mut &file, b"\n")
}
