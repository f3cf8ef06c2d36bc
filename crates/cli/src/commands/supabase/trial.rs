//! Row security put to the test: rows of two users are made, each tries what it must not be able to do, all is undone.

use anyhow::{Context, Result, bail};
use tokio_postgres::{Client, Transaction};

use super::findings::Finding;

const ANA: &str = "00000000-0000-4000-8000-00000000000a";
const BEN: &str = "00000000-0000-4000-8000-00000000000b";
const OF_ANA: &str = "00000000-0000-4000-8000-0000000000a1";
const OF_BEN: &str = "00000000-0000-4000-8000-0000000000b1";

/// What somebody tries, and how it must end.
struct Attempt {
    what: &'static str,
    sql: &'static str,
    end: End,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// It works, on so many rows.
    Works(u64),
    /// It is refused, or touches no row.
    TouchesNothing,
}

use End::{TouchesNothing, Works};

// The names of the rows are put in before they run.
const AS_A_USER: &[Attempt] = &[
    Attempt { what: "read own conversations", sql: "SELECT FROM public.conversations", end: Works(1) },
    Attempt { what: "read own messages", sql: "SELECT FROM public.messages", end: Works(1) },
    Attempt {
        what: "write a message of their own",
        sql: "INSERT INTO public.messages (conversation_id, role, content) VALUES ('OF_ANA', 'user', 'x')",
        end: Works(1),
    },
    Attempt {
        what: "read another's conversation",
        sql: "SELECT FROM public.conversations WHERE id = 'OF_BEN'",
        end: TouchesNothing,
    },
    Attempt {
        what: "read another's messages",
        sql: "SELECT FROM public.messages WHERE conversation_id = 'OF_BEN'",
        end: TouchesNothing,
    },
    Attempt {
        what: "change another's conversation",
        sql: "UPDATE public.conversations SET title = 'x' WHERE id = 'OF_BEN'",
        end: TouchesNothing,
    },
    Attempt {
        what: "change another's messages",
        sql: "UPDATE public.messages SET content = 'x' WHERE conversation_id = 'OF_BEN'",
        end: TouchesNothing,
    },
    Attempt {
        what: "delete another's conversation",
        sql: "DELETE FROM public.conversations WHERE id = 'OF_BEN'",
        end: TouchesNothing,
    },
    Attempt {
        what: "delete another's messages",
        sql: "DELETE FROM public.messages WHERE conversation_id = 'OF_BEN'",
        end: TouchesNothing,
    },
    Attempt {
        what: "make a conversation in another's name",
        sql: "INSERT INTO public.conversations (user_id, title) VALUES ('BEN', 'x')",
        end: TouchesNothing,
    },
    Attempt {
        what: "write into another's conversation",
        sql: "INSERT INTO public.messages (conversation_id, role, content) VALUES ('OF_BEN', 'user', 'x')",
        end: TouchesNothing,
    },
    Attempt {
        what: "give a conversation to another",
        sql: "UPDATE public.conversations SET user_id = 'BEN' WHERE id = 'OF_ANA'",
        end: TouchesNothing,
    },
    Attempt {
        what: "move a message into another's conversation",
        sql: "UPDATE public.messages SET conversation_id = 'OF_BEN' WHERE conversation_id = 'OF_ANA'",
        end: TouchesNothing,
    },
    Attempt { what: "empty a table", sql: "TRUNCATE public.messages", end: TouchesNothing },
    // Without a condition a policy for reading is not asked, so these tell what the others cannot.
    Attempt {
        what: "change own conversations only",
        sql: "UPDATE public.conversations SET title = 'x'",
        end: Works(1),
    },
    Attempt { what: "change own messages only", sql: "UPDATE public.messages SET content = 'x'", end: Works(1) },
    Attempt { what: "delete own messages only", sql: "DELETE FROM public.messages", end: Works(1) },
    Attempt { what: "delete own conversations only", sql: "DELETE FROM public.conversations", end: Works(1) },
];

const AS_NOBODY: &[Attempt] = &[
    Attempt { what: "read conversations", sql: "SELECT FROM public.conversations", end: TouchesNothing },
    Attempt { what: "read messages", sql: "SELECT FROM public.messages", end: TouchesNothing },
    Attempt {
        what: "write a message",
        sql: "INSERT INTO public.messages (conversation_id, role, content) VALUES ('OF_ANA', 'user', 'x')",
        end: TouchesNothing,
    },
    Attempt {
        what: "make a conversation",
        sql: "INSERT INTO public.conversations (user_id, title) VALUES ('ANA', 'x')",
        end: TouchesNothing,
    },
    Attempt { what: "change conversations", sql: "UPDATE public.conversations SET title = 'x'", end: TouchesNothing },
    Attempt { what: "delete messages", sql: "DELETE FROM public.messages", end: TouchesNothing },
    Attempt { what: "empty a table", sql: "TRUNCATE public.messages", end: TouchesNothing },
];

/// Tries it all in one transaction that is never committed.
pub(super) async fn run(client: &mut Client) -> Result<Vec<Finding>> {
    let mut transaction = client.transaction().await.context("the trial cannot begin")?;
    make_rows(&transaction).await.context("the trial's rows cannot be made")?;
    let mut findings = Vec::new();
    for (who, role, user, attempts) in [
        ("a user", "authenticated", ANA, AS_A_USER),
        ("authenticated without a user", "authenticated", "", AS_NOBODY),
        ("anon", "anon", "", AS_NOBODY),
    ] {
        let before = findings.len();
        for attempt in attempts {
            findings.extend(attempt.run(&mut transaction, who, role, user).await?);
        }
        if findings.len() == before {
            findings.push(Finding::there(
                format!("trial as {who}"),
                format!("{} attempts ended as they must", attempts.len()),
            ));
        }
    }
    transaction.rollback().await.context("the trial cannot be undone")?;
    Ok(findings)
}

async fn make_rows(transaction: &Transaction<'_>) -> Result<(), tokio_postgres::Error> {
    let users = format!("INSERT INTO auth.users (id) VALUES ('{ANA}'), ('{BEN}')");
    let conversations = format!(
        "INSERT INTO public.conversations (id, user_id, title) VALUES ('{OF_ANA}', '{ANA}', 'x'), ('{OF_BEN}', '{BEN}', 'x')"
    );
    let messages = format!(
        "INSERT INTO public.messages (conversation_id, role, content) VALUES ('{OF_ANA}', 'user', 'x'), ('{OF_BEN}', 'user', 'x')"
    );
    for sql in [users, conversations, messages] {
        transaction.batch_execute(&sql).await?;
    }
    Ok(())
}

impl Attempt {
    /// `None` when it ends as it must. What it did is undone at once.
    async fn run(
        &self,
        transaction: &mut Transaction<'_>,
        who: &str,
        role: &str,
        user: &str,
    ) -> Result<Option<Finding>> {
        let savepoint = transaction.savepoint("attempt").await?;
        let claims = if user.is_empty() {
            format!("{{\"role\":\"{role}\"}}")
        } else {
            format!("{{\"sub\":\"{user}\",\"role\":\"{role}\"}}")
        };
        let become_somebody = format!("SET LOCAL ROLE {role}; SET LOCAL request.jwt.claims = '{claims}'");
        if let Err(error) = savepoint.batch_execute(&become_somebody).await {
            bail!("this role may not act as {role}: {error}; connect as postgres");
        }
        let sql = [("OF_ANA", OF_ANA), ("OF_BEN", OF_BEN), ("ANA", ANA), ("BEN", BEN)];
        let sql = sql.iter().fold(self.sql.to_owned(), |sql, (name, id)| sql.replace(name, id));
        let touched = savepoint.execute(&sql, &[]).await;
        savepoint.rollback().await?;
        let detail = match (self.end, touched) {
            (Works(expected), Ok(touched)) if touched == expected => return Ok(None),
            (TouchesNothing, Ok(0) | Err(_)) => return Ok(None),
            (TouchesNothing, Ok(_)) => format!("{who} can {}", self.what),
            (Works(expected), Ok(touched)) => format!("{who} cannot {}: {touched} rows, not {expected}", self.what),
            (Works(_), Err(error)) => format!("{who} cannot {}: {}", self.what, reason(&error)),
        };
        Ok(Some(Finding::missing(format!("trial as {who}"), detail)))
    }
}

fn reason(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().to_owned())
}
