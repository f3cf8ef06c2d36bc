use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;
use threadkeep::core::shown_address;
use threadkeep::models::{
    FoundModel, Ping, Price, PriceTable, ProviderModel, Selected, SelectionError, find_models, select, select_embedder,
};

use super::{App, Status};
use crate::failure::Failure;
use crate::models;
use crate::progress;
use crate::table::{Side, Table};

/// Show the language models that are found, and whether they answer
///
/// Models are found by the variables that docs/models.md lists. Asking them whether they are there costs no tokens. Keys
/// are never printed. Exits with 1 if the model that would speak does not answer.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep models
  threadkeep models --model ollama:qwen3     is this one there?
  threadkeep models --no-ping                only what the environment says")]
pub(crate) struct Arguments {
    /// The model to speak: offline, PROVIDER, PROVIDER:MODEL, or a model of the first provider that is found
    #[arg(long, value_name = "NAME", env = "THREADKEEP_MODEL", hide_env_values = true)]
    model: Option<String>,
    /// Ask nobody
    #[arg(long)]
    no_ping: bool,
    /// Prices beside the built-in ones: JSON, as docs/models.md shows
    #[arg(long, value_name = "FILE", env = "THREADKEEP_PRICES", hide_env_values = true)]
    prices: Option<PathBuf>,
}

/// What stands for a setting that no variable holds.
const BUILT_IN: &str = "built in";

/// What is printed for programs.
#[derive(Serialize)]
struct Models {
    /// The model that would speak, as `PROVIDER:MODEL` or `offline`; null where it cannot be used.
    selected: Option<String>,
    models: Vec<Row>,
    /// The embedding model, if one is named.
    embedder: Option<String>,
}

#[derive(Serialize)]
struct Row {
    provider: String,
    model: Option<String>,
    model_from: Option<String>,
    address: Option<String>,
    address_from: Option<String>,
    /// The variable that holds the key.
    key: Option<&'static str>,
    price: Option<Price>,
    /// `ready`, `answers`, `unknown_model`, `unauthorized`, `unreachable`, `unusable`, or `not_asked`.
    status: &'static str,
    detail: Option<String>,
    #[serde(skip)]
    is_selected: bool,
}

impl Row {
    /// The name that selects it.
    fn name(&self) -> String {
        match &self.model {
            Some(model) if self.address.is_some() => format!("{}:{model}", self.provider),
            _ => self.provider.clone(),
        }
    }

    /// The variables that it comes from.
    fn set_by(&self) -> String {
        let origins = [self.key, self.model_from.as_deref(), self.address_from.as_deref()];
        let origins: Vec<&str> = origins.into_iter().flatten().filter(|origin| *origin != BUILT_IN).collect();
        origins.join(", ")
    }
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let environment = models::environment(arguments.model.as_deref(), &app.settings);
    let prices = models::prices(arguments.prices.as_deref(), &app.settings)?;
    let selected = match select(arguments.model.as_deref(), &environment) {
        // What stands in the environment is listed with what is wrong with it.
        Err(error) if arguments.model.is_none() => Err(error),
        selected => Ok(selected.map_err(unselected)?),
    };
    let embedder = select_embedder(None, &environment).map_err(unselected)?;
    let found = listed(find_models(&environment), selected.as_ref().ok());
    let spinner = progress::spinner("asking the providers…");
    let mut rows = Vec::new();
    for found in &found {
        let is_selected = matches!((found, &selected), (Ok(found), Ok(Selected::Provider(one))) if **one == *found);
        rows.push(row(found, is_selected, &prices, !arguments.no_ping).await);
    }
    spinner.finish_and_clear();
    rows.push(offline(matches!(selected, Ok(Selected::Offline))));
    let speaks = rows.iter().find(|row| row.is_selected);
    let answers = speaks.is_some_and(|row| matches!(row.status, "ready" | "answers" | "not_asked"));
    if app.output.is_json() {
        let selected = speaks.map(Row::name);
        app.output.json(&Models { selected, models: rows, embedder: embedder.map(|embedder| embedder.model) })?;
    } else {
        print(app, &rows)?;
        if let Some(embedder) = embedder {
            app.output.line(format_args!(
                "\nembeddings by {} at {}",
                embedder.model,
                shown_address(&embedder.base_url)
            ))?;
        }
    }
    Ok(if answers { Status::Done } else { Status::Findings })
}

/// The models of the environment, and first the one that was named, which may be another than its provider's variables
/// name.
fn listed(
    mut found: Vec<Result<FoundModel, SelectionError>>,
    selected: Option<&Selected>,
) -> Vec<Result<FoundModel, SelectionError>> {
    if let Some(Selected::Provider(selected)) = selected {
        found.retain(|other| !matches!(other, Ok(other) if *other == **selected));
        found.insert(0, Ok((**selected).clone()));
    }
    found
}

fn print(app: &App, rows: &[Row]) -> Result<()> {
    app.output.line(table(rows))?;
    for row in rows {
        if let Some(detail) = &row.detail {
            app.output.note(format_args!("{}: {detail}", row.provider));
        }
    }
    if rows.len() == 1 {
        app.output.note("hint: docs/models.md lists the variables that let a language model speak");
    }
    Ok(())
}

pub(super) fn unselected(error: SelectionError) -> Failure {
    Failure::yours(error.to_string()).hint("docs/models.md lists the variables and names")
}

async fn row(found: &Result<FoundModel, SelectionError>, is_selected: bool, prices: &PriceTable, asks: bool) -> Row {
    let found = match found {
        Ok(found) => found,
        Err(error) => return unusable(error),
    };
    let (status, detail) = if asks { asked(found).await } else { ("not_asked", None) };
    Row {
        provider: found.provider.to_string(),
        model: Some(found.model.clone()),
        model_from: Some(found.model_origin.to_string()),
        address: Some(shown_address(&found.base_url)),
        address_from: Some(found.base_url_origin.to_string()),
        key: found.key_variable,
        price: prices.find(found.provider.as_str(), &found.model).copied(),
        status,
        detail,
        is_selected,
    }
}

async fn asked(found: &FoundModel) -> (&'static str, Option<String>) {
    let model = match ProviderModel::new(found.config(PriceTable::default())) {
        Ok(model) => model,
        Err(error) => return ("unusable", Some(error.to_string())),
    };
    match model.ping().await {
        Ping::Ready => ("ready", None),
        Ping::UnknownModel { known } => {
            ("unknown_model", Some(format!("{} is not among its models: {}", found.model, known.join(", "))))
        }
        Ping::Unauthorized(detail) => ("unauthorized", Some(detail)),
        Ping::Unreachable(detail) => ("unreachable", Some(detail)),
        _ => ("answers", None),
    }
}

fn unusable(error: &SelectionError) -> Row {
    let (provider, detail) = match error {
        SelectionError::Missing { provider, variable } => (provider.to_string(), format!("needs {variable}")),
        other => ("environment".to_owned(), other.to_string()),
    };
    Row {
        provider,
        model: None,
        model_from: None,
        address: None,
        address_from: None,
        key: None,
        price: None,
        status: "unusable",
        detail: Some(detail),
        is_selected: false,
    }
}

fn offline(is_selected: bool) -> Row {
    Row {
        provider: "offline".to_owned(),
        model: Some("offline".to_owned()),
        model_from: Some(BUILT_IN.to_owned()),
        address: None,
        address_from: None,
        key: None,
        price: None,
        status: "ready",
        detail: None,
        is_selected,
    }
}

fn table(rows: &[Row]) -> String {
    let columns = ["", "model", "status", "$/M in, out", "address", "set by"];
    let mut table = Table::new(columns.map(|name| (name, Side::Left)));
    for row in rows {
        table.add_row([
            if row.is_selected { "*" } else { "" }.to_owned(),
            row.name(),
            row.status.replace('_', " "),
            row.price.map(|price| format!("{}, {}", price.input, price.output)).unwrap_or_default(),
            row.address.clone().unwrap_or_default(),
            row.set_by(),
        ]);
    }
    table.text()
}
