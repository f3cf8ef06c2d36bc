use super::*;

fn policy(name: &str, command: &str, using: Option<&str>, check: Option<&str>) -> Policy {
    Policy {
        name: name.to_owned(),
        is_permissive: true,
        roles: vec!["authenticated".to_owned()],
        command: command.to_owned(),
        using: using.map(str::to_owned),
        check: check.map(str::to_owned),
    }
}

type Change = Box<dyn FnOnce(&mut Table)>;

/// Returns a table without problems.
fn valid_table(required: &RequiredTable) -> Table {
    let columns = required.columns.iter();
    let privileges = COMMANDS.map(|privilege| ("authenticated".to_owned(), privilege.to_owned()));
    let owner_check = Some("(user_id = auth.uid())");
    Table {
        name: required.name.to_owned(),
        is_table: true,
        has_row_security: true,
        columns: columns.map(|(name, kind)| Column { name: (*name).to_owned(), kind: (*kind).to_owned() }).collect(),
        references: vec![(required.reference.0.to_owned(), required.reference.1.to_owned())],
        policies: vec![policy("own", "ALL", owner_check, owner_check)],
        privileges: privileges.into(),
    }
}

fn catalog(change: impl FnOnce(&mut Table)) -> Catalog {
    let mut catalog = Catalog { missing_platform: Vec::new(), tables: TABLES.iter().map(valid_table).collect() };
    change(&mut catalog.tables[0]);
    catalog
}

fn missing(catalog: &Catalog) -> Vec<String> {
    of(catalog).into_iter().filter(|finding| !finding.is_there).map(|finding| finding.to_string()).collect()
}

#[test]
fn valid_database_has_no_problems() {
    assert_eq!(missing(&catalog(|_| {})), [] as [&str; 0]);
    assert_eq!(sql(&of(&catalog(|_| {}))), "");
    // A policy per command and a varchar column are accepted as well.
    let owner_check = Some("(user_id = ( SELECT auth.uid() AS uid))");
    let each = catalog(|table| {
        table.policies = vec![
            policy("read", "SELECT", owner_check, None),
            policy("add", "INSERT", None, owner_check),
            policy("change", "UPDATE", owner_check, None),
            policy("delete", "DELETE", owner_check, None),
        ];
        table.columns[2].kind = "character varying(100)".to_owned();
    });
    assert_eq!(missing(&each), [] as [&str; 0]);
}

#[test]
fn sql_for_an_empty_database_can_run_in_its_order() {
    let empty = Catalog { missing_platform: vec!["role anon".to_owned()], tables: Vec::new() };
    let sql = sql(&of(&empty));
    let offsets: Vec<_> = [
        "CREATE ROLE anon",
        "TABLE IF NOT EXISTS public.conversations",
        "POLICY conversations_of_their_user",
        "TABLE IF NOT EXISTS public.messages",
        "POLICY messages_of_their_user",
        "GRANT SELECT, INSERT",
    ]
    .map(|piece| sql.find(piece).unwrap_or_else(|| panic!("{piece} is not in {sql}")))
    .into();
    assert!(offsets.is_sorted(), "{offsets:?}");
}

#[test]
fn each_problem_is_named() {
    let cases: Vec<(Change, &str)> = vec![
        (Box::new(|table| table.is_table = false), "table conversations: not a table"),
        (Box::new(|table| drop(table.columns.remove(3))), "column conversations.model: missing, expected type text"),
        (
            Box::new(|table| table.columns[1].kind = "text".to_owned()),
            "column conversations.user_id: has type text, expected uuid",
        ),
        (
            Box::new(|table| table.references.clear()),
            "foreign key conversations.user_id: does not reference auth.users",
        ),
        (Box::new(|table| table.has_row_security = false), "row security of conversations: disabled"),
        (
            Box::new(|table| table.policies[0].command = "SELECT".to_owned()),
            "policies of conversations: no policy lets a user INSERT, UPDATE, DELETE their own rows",
        ),
        (
            Box::new(|table| table.policies.push(policy("open", "SELECT", Some("true"), None))),
            "policy open of conversations: does not check the row's owner",
        ),
        (
            Box::new(|table| table.policies[0].roles = vec!["anon".to_owned()]),
            "policies of conversations: no policy lets a user SELECT, INSERT, UPDATE, DELETE their own rows",
        ),
        (Box::new(|table| drop(table.privileges.pop())), "privileges: authenticated lacks DELETE on conversations"),
        (
            Box::new(|table| table.privileges.push(("anon".to_owned(), "TRUNCATE".to_owned()))),
            "privileges: anon has TRUNCATE on conversations",
        ),
    ];
    for (change, expected) in cases {
        let missing = missing(&catalog(change));
        assert!(missing.iter().any(|found| found.starts_with(expected)), "{expected}: {missing:?}");
    }
}

#[test]
fn restrictive_policy_is_not_open() {
    let narrowed = catalog(|table| {
        let narrow = Policy { is_permissive: false, ..policy("narrow", "ALL", Some("true"), None) };
        table.policies.push(narrow);
        let service = policy("service", "ALL", Some("true"), None);
        table.policies.push(Policy { roles: vec!["service_role".to_owned()], ..service });
    });
    assert_eq!(missing(&narrowed), [] as [&str; 0]);
}
