//! Data as released versions wrote it. Every later version must read it.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use threadkeep_core::exchange::{ExportedMessage, ExportedThread};
use threadkeep_core::{Batch, Content, Dump, IdempotencyKey, PutRecord, Role, Thread};
use uuid::Uuid;

use crate::cases::{TEXTS, eventful, full};
use crate::client::Client;
use crate::conversation::Conversation;
use crate::given::{acme, adds, ana, app, at, batch, named, put, says, spoken, system};
use crate::run::Subject;
use crate::{Factory, Instance};

/// A thread as it was stored, and what is read from it.
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

/// All golden files. One is added with each new format; none is ever changed or taken away.
pub(crate) const GOLDEN: &[Golden] =
    golden!["v1" / "eventful", "v1" / "content", "v1" / "texts", "v2" / "eventful", "v2" / "content", "v2" / "texts"];

/// What is read from a thread.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Expected {
    pub(crate) thread: ExportedThread,
    pub(crate) messages: Vec<ExportedMessage>,
}

impl Golden {
    pub(crate) fn dump(&self) -> Vec<Dump> {
        serde_json::from_str(self.dump).expect("a golden dump is read by every later version")
    }

    pub(crate) fn expected(&self) -> Expected {
        serde_json::from_str(self.expected).expect("golden messages are read by every later version")
    }
}

/// Reads a thread whole.
pub(crate) async fn read(conversation: &Conversation) -> Expected {
    let now = at(500);
    let messages = conversation.messages(now).await.into_iter().map(ExportedMessage::from).collect();
    Expected { thread: exported(conversation.thread(now).await), messages }
}

fn exported(thread: Thread) -> ExportedThread {
    let Thread { id, owner, key, title, metadata, state, created_at, expires_at, .. } = thread;
    ExportedThread { id, owner, key, title, metadata, state, created_at, expires_at }
}

/// Writes the golden files of the present format into a folder. Only for a format that has none yet.
///
/// # Errors
/// What the file system says; a file that is there already is never overwritten.
pub async fn write_golden(factory: &dyn Factory, folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for name in ["eventful", "content", "texts"] {
        let instance: Box<dyn Instance> = factory.create().await;
        let subject = Subject::new(instance, None);
        let conversation = write_thread(&subject.client, name).await;
        write_new(&folder.join(format!("{name}.dump.json")), &conversation.dump(4).await)?;
        write_new(&folder.join(format!("{name}.expected.json")), &read(&conversation).await)?;
    }
    Ok(())
}

async fn write_thread(client: &Client, name: &str) -> Conversation {
    if name == "eventful" {
        return eventful(client).await;
    }
    if name == "content" {
        return write_contents(client).await;
    }
    let conversation = Conversation::open(client, &ana(), 1, at(0)).await;
    let texts = (1..).zip(TEXTS).map(|(number, text)| says(number, text)).collect();
    conversation.commit(&adds(texts), at(100)).await;
    let lease = PutRecord { expires_at: Some(at(1_000_000)), ..put(system("run"), "lease", "1") };
    let minted = Batch {
        key: IdempotencyKey::Minted(Uuid::from_u128(0x5000_0000_0000_0000_0000)),
        put: vec![lease, put(app("notes"), "gone", "2")],
        ..batch("minted")
    };
    conversation.commit(&minted, at(101)).await;
    conversation.commit(&Batch { delete: vec![named(app("notes"), "gone")], ..batch("delete") }, at(102)).await;
    conversation
}

/// A thread that a tenant's users share.
async fn write_contents(client: &Client) -> Conversation {
    let conversation = Conversation::open(client, &acme(), 1, at(0)).await;
    let plain = Role::ALL.map(|role| Content::text(role, "plain"));
    let contents = [full()].into_iter().chain(plain).chain(Role::ALL.map(Content::empty));
    let messages = (1..).zip(contents).map(|(number, content)| spoken(number, content)).collect();
    conversation.commit(&adds(messages), at(100)).await;
    conversation
}

fn write_new<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    let file = std::fs::File::create_new(path)?;
    serde_json::to_writer_pretty(&file, value)?;
    io::Write::write_all(&mut &file, b"\n")
}
