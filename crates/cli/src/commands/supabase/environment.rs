//! Checks the variables of `.env.local`. Values are never printed.

use std::path::Path;

use serde::Deserialize;

use super::findings::Finding;

/// The variables that a Supabase application sets in `.env.local`.
const NAMES: [&str; 4] = [URL, SERVICE_KEY, "OPENAI_API_KEY", PASSWORD];
const URL: &str = "NEXT_PUBLIC_SUPABASE_URL";
const SERVICE_KEY: &str = "SUPABASE_SERVICE_ROLE_KEY";
const PASSWORD: &str = "LOCAL_POSTGRES_PASSWORD";

/// The variables of the file, followed by those of the process. The first non-empty value of a name is used.
#[derive(Debug, Default)]
pub(super) struct Environment {
    pairs: Vec<(String, String)>,
}

impl Environment {
    /// Reads a file, which need not exist.
    pub(super) fn read(file: &Path) -> Self {
        let mut pairs = parse(&std::fs::read_to_string(file).unwrap_or_default());
        for name in NAMES {
            if let Ok(value) = std::env::var(name) {
                pairs.push((name.to_owned(), value));
            }
        }
        Self { pairs }
    }

    fn find(&self, name: &str) -> Option<&str> {
        let mut pairs = self.pairs.iter().filter(|(_, value)| !value.is_empty());
        pairs.find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// Returns a finding for each variable.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let findings = NAMES.map(|name| match (name, self.find(name)) {
            (_, None) => Finding::failed(name, "not set in .env.local"),
            (URL, Some(url)) if !url.starts_with("http") => {
                Finding::failed(name, "not a URL; expected the URL of the HTTP API, which starts with https://")
            }
            (SERVICE_KEY, Some(key)) => check_key(name, key),
            _ => Finding::passed(name, "set"),
        });
        findings.into()
    }

    /// Explains where to find the database URL.
    pub(super) fn database_hint(&self) -> String {
        let project = self.find(URL).and_then(|url| url.strip_prefix("https://")?.split_once(".supabase.co"));
        let host =
            project.map_or_else(|| "db.PROJECT.supabase.co".to_owned(), |(id, _)| format!("db.{id}.supabase.co"));
        let mut hint = format!(
            "use the connection string that the project's dashboard shows under Connect: \
             postgresql://postgres:PASSWORD@{host}:5432/postgres, with the password of the database"
        );
        if self.find(PASSWORD).is_some() {
            hint += &format!("; for a local stack: postgresql://postgres:${PASSWORD}@127.0.0.1:54322/postgres");
        }
        hint
    }
}

fn parse(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.strip_prefix("export ").unwrap_or(line).split_once('='));
    pairs.map(|(name, value)| (name.trim().to_owned(), unquoted(value.trim()).to_owned())).collect()
}

fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner;
        }
    }
    value.split(" #").next().unwrap_or(value).trim_end()
}

fn check_key(name: &'static str, key: &str) -> Finding {
    match role(key).as_deref() {
        Some("service_role") => Finding::passed(name, "set, a service_role key"),
        Some(role) => Finding::failed(name, format!("a key of the role {role}, expected a service_role key")),
        None => Finding::passed(name, "set"),
    }
}

/// Returns the role of a key if it can be read from the key: older keys are tokens with a `role` claim, newer keys have a
/// prefix.
fn role(key: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Claims {
        role: String,
    }
    if key.starts_with("sb_secret_") {
        return Some("service_role".to_owned());
    }
    if key.starts_with("sb_publishable_") {
        return Some("anon".to_owned());
    }
    let claims = from_base64url(key.split('.').nth(1)?)?;
    serde_json::from_slice::<Claims>(&claims).ok().map(|claims| claims.role)
}

fn from_base64url(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut bit_count) = (Vec::new(), 0_u32, 0);
    for digit in text.trim_end_matches('=').bytes() {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        bit_count += 6;
        if bit_count >= 8 {
            bit_count -= 8;
            bytes.push((bits >> bit_count) as u8);
            bits &= (1 << bit_count) - 1;
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(text: &str) -> Environment {
        Environment { pairs: parse(text) }
    }

    fn missing(text: &str) -> Vec<String> {
        let findings = environment(text).findings().into_iter();
        findings.filter(|finding| !finding.is_there).map(|finding| finding.to_string()).collect()
    }

    // S3.39
    #[test]
    fn findings_list_missing_variables() {
        assert_eq!(missing("").len(), 4);
        let all = "# keys\nNEXT_PUBLIC_SUPABASE_URL=https://abc.supabase.co\nexport OPENAI_API_KEY='sk-x'\n\
                   SUPABASE_SERVICE_ROLE_KEY=\"sb_secret_1\"\nLOCAL_POSTGRES_PASSWORD=a=b # local\n";
        assert_eq!(missing(all), [] as [&str; 0]);
        assert_eq!(environment(all).find(PASSWORD), Some("a=b"));
        let without = all.replace("OPENAI_API_KEY='sk-x'", "OPENAI_API_KEY=");
        assert_eq!(missing(&without), ["OPENAI_API_KEY: not set in .env.local"]);
    }

    // S3.41
    #[test]
    fn check_key_detects_an_anon_key() {
        // {"alg":"HS256"} . {"role":"anon","iss":"supabase"}
        let anon = "eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoiYW5vbiIsImlzcyI6InN1cGFiYXNlIn0.c2lnbmF0dXJl";
        let service = "eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoic2VydmljZV9yb2xlIn0.c2lnbmF0dXJl";
        for (key, expected) in [
            (anon, Some("anon")),
            (service, Some("service_role")),
            ("sb_secret_abc", Some("service_role")),
            ("sb_publishable_abc", Some("anon")),
            ("xxx", None),
            ("a.b!.c", None),
        ] {
            assert_eq!(role(key).as_deref(), expected, "{key}");
        }
        let finding = check_key(SERVICE_KEY, anon);
        assert!(!finding.is_there && !finding.to_string().contains(anon), "{finding}");
    }

    #[test]
    fn database_hint_names_the_projects_host() {
        let hint = environment("NEXT_PUBLIC_SUPABASE_URL=https://abc.supabase.co\nLOCAL_POSTGRES_PASSWORD=secret")
            .database_hint();
        assert!(hint.contains("postgres:PASSWORD@db.abc.supabase.co:5432"), "{hint}");
        assert!(hint.contains("$LOCAL_POSTGRES_PASSWORD@127.0.0.1:54322") && !hint.contains("secret"), "{hint}");
        assert!(environment("").database_hint().contains("db.PROJECT.supabase.co"));
    }
}
