//! Names, timestamps, limits and access.

use threadkeep_core::{
    Access, Batch, Content, Fingerprint, IdempotencyKey, JsonText, MessageId, Namespace, NewMessage, Owner, Role,
    Scope, StoreError, TenantId, ThreadId, ThreadKey, Timestamp, UserId, limits,
};

/// Tests every cell of the table in [`Scope::access`].
#[test]
fn access_of_scopes_follows_the_table() {
    let user = |name: &str| Owner::User(UserId::new(name).unwrap());
    let ana = Scope::user("acme", "ana").unwrap();
    let acme = Scope::tenant("acme").unwrap();
    assert_eq!(ana.access(&user("ana")), Access::Full);
    assert_eq!(ana.access(&user("ben")), Access::None);
    assert_eq!(ana.access(&Owner::Tenant), Access::Append);
    for owner in [user("ana"), user("ben"), Owner::Tenant] {
        assert_eq!(acme.access(&owner), Access::Full);
    }
    assert_eq!((ana.default_owner(), acme.default_owner()), (user("ana"), Owner::Tenant));
}

#[test]
fn names_are_limited_and_have_no_control_characters() {
    assert!(TenantId::new("a".repeat(200)).is_ok());
    assert!(matches!(TenantId::new("a".repeat(201)), Err(StoreError::LimitExceeded { limit: "tenant", max: 200, .. })));
    for bad in ["", "a\0b", "a\nb", "\u{7f}"] {
        assert!(matches!(UserId::new(bad), Err(StoreError::Invalid { field: "user", .. })), "{bad:?}");
        assert!(matches!(ThreadKey::new(bad), Err(StoreError::Invalid { field: "thread key", .. })), "{bad:?}");
    }
    assert!(ThreadKey::new("é".repeat(250)).is_ok());
    assert!(ThreadKey::new("é".repeat(251)).is_err());
    assert!(serde_json::from_str::<TenantId>("\"\"").is_err(), "names from JSON are also checked");
}

#[test]
fn namespaces_of_application_and_system_differ() {
    let app: Namespace = "app/journal".parse().unwrap();
    let system: Namespace = "system/journal".parse().unwrap();
    assert_ne!(app, system);
    assert_eq!((app.to_string(), system.to_string()), ("app/journal".to_owned(), "system/journal".to_owned()));
    for bad in ["journal", "other/journal", "app/", ""] {
        assert!(bad.parse::<Namespace>().is_err(), "{bad}");
    }
}

#[test]
fn timestamps_are_utc_microseconds() {
    let at: Timestamp = "2026-11-21T10:30:00.000001+02:00".parse().unwrap();
    assert_eq!(at.to_string(), "2026-11-21T08:30:00.000001Z");
    assert_eq!(Timestamp::from_micros(at.as_micros()).unwrap(), at);
    assert_eq!(serde_json::to_string(&at).unwrap(), "\"2026-11-21T08:30:00.000001Z\"");
    assert!(Timestamp::MAX.plus_ms(i64::MAX) == Timestamp::MAX && Timestamp::MIN.plus_ms(i64::MIN) == Timestamp::MIN);
    assert!(Timestamp::from_micros(i64::MAX).is_err());
    for bad in ["", "2026-11-21", "2026-11-21T08:30:00", "yesterday"] {
        assert!(bad.parse::<Timestamp>().is_err(), "{bad}");
    }
}

#[test]
fn ids_are_sorted_by_time_or_derived_from_names() {
    let at: Timestamp = "2026-11-21T08:30:00Z".parse().unwrap();
    let (first, second) = (ThreadId::v7(at, [255; 10]), ThreadId::v7(at.plus_ms(1), [0; 10]));
    assert!(first < second);
    assert_eq!(first.0.get_version_num(), 7);
    assert_eq!(MessageId::from_name(b"a"), MessageId::from_name(b"a"));
    assert_ne!(MessageId::from_name(b"a"), MessageId::from_name(b"b"));
    assert!("not an id".parse::<ThreadId>().is_err());
}

#[test]
fn idempotency_keys_round_trip_as_bytes() {
    let generated = IdempotencyKey::Generated(MessageId::from_name(b"a").0);
    let from_caller = IdempotencyKey::FromCaller("0123456789".to_owned());
    for key in [generated, from_caller, IdempotencyKey::FromCaller("é".to_owned())] {
        assert_eq!(IdempotencyKey::from_bytes(&key.to_bytes()).unwrap(), key);
    }
    assert!(IdempotencyKey::from_bytes(b"neither").is_err());
}

#[test]
fn json_depth_is_limited() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(JsonText::new(nested(limits::JSON_DEPTH)).is_ok());
    assert!(matches!(JsonText::new(nested(limits::JSON_DEPTH + 1)), Err(StoreError::LimitExceeded { .. })));
    assert!(matches!(JsonText::new(nested(1_000_000)), Err(StoreError::LimitExceeded { .. })));
    assert!(JsonText::new(format!("\"{}\"", "[".repeat(1000))).is_ok(), "brackets in a string do not nest");
    assert!(matches!(JsonText::new("{"), Err(StoreError::Invalid { .. })));
}

fn batch_of(messages: impl IntoIterator<Item = NewMessage>) -> Batch {
    let mut batch = Batch::new(IdempotencyKey::FromCaller("k".to_owned()), Fingerprint::of(b""));
    batch.append.extend(messages);
    batch
}

fn user_message(text: &str) -> NewMessage {
    NewMessage {
        id: MessageId::from_name(text.as_bytes()),
        external_id: None,
        created_at: Timestamp::MIN,
        content: Content::text(Role::User, text),
    }
}

#[test]
fn total_bytes_of_a_commit_are_limited() {
    let large = |number: u32| user_message(&format!("{number}{}", "x".repeat(3_900_000)));
    assert!(batch_of((0..4).map(large)).encode().is_ok());
    let rejected = batch_of((0..5).map(large)).encode();
    assert!(matches!(rejected, Err(StoreError::LimitExceeded { limit: "commit bytes", .. })));
}

#[test]
fn duplicate_message_in_a_commit_is_rejected() {
    let twice = batch_of([user_message("a"), user_message("a")]);
    assert!(matches!(twice.encode(), Err(StoreError::Invalid { field: "message id", .. })));
    let mut appended_and_erased = batch_of([user_message("a")]);
    appended_and_erased.erase.push(MessageId::from_name(b"a"));
    assert!(matches!(appended_and_erased.encode(), Err(StoreError::Invalid { field: "message id", .. })));
}

#[test]
fn store_error_reports_whether_a_retry_may_help() {
    assert!(StoreError::unavailable(threadkeep_core::Reason::Busy).is_retryable());
    assert!(!StoreError::unavailable(threadkeep_core::Reason::Full).is_retryable());
    let outcome_unknown =
        StoreError::Unavailable { reason: threadkeep_core::Reason::Timeout, maybe_applied: true, source: None };
    assert!(outcome_unknown.maybe_applied());
    assert_eq!(outcome_unknown.to_string(), "store unavailable: timed out (the change may have been applied)");
}
