//! The knowledge graph: entities with observations, and relations between them. The names, arguments and results of the tools are
//! those of the MCP reference server for memory, so that what was written for that server can be used.
//!
//! `graph` stores entities as records of the scope's user or tenant. This file has the tools that write, `read` those that read.

mod entity;
mod graph;
mod read;

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};

use entity::{Entity, Relation, check_name, check_observations, check_type};
pub(crate) use entity::{NAME_BYTES, OBSERVATION_CHARS, TYPE_CHARS};
use graph::Graph;
pub(crate) use read::{open_nodes, read_graph, search_nodes};

use super::insert;
use crate::{ToolFailure, Toolbox};

/// The maximum number of items of a list in the arguments.
pub(crate) const ITEMS: usize = 500;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewEntities {
    entities: Vec<NewEntity>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NewEntity {
    name: String,
    entity_type: String,
    observations: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Relations {
    relations: Vec<Relation>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Additions {
    observations: Vec<Addition>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Addition {
    entity_name: String,
    contents: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct EntityNames {
    entity_names: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deletions {
    deletions: Vec<Deletion>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Deletion {
    entity_name: String,
    observations: Vec<String>,
}

pub(crate) async fn create_entities(toolbox: &Toolbox, arguments: NewEntities) -> Result<Value, ToolFailure> {
    let NewEntities { entities } = arguments;
    check_count("entities", entities.len())?;
    let mut checked = Vec::new();
    for (index, NewEntity { name, entity_type, observations }) in entities.into_iter().enumerate() {
        let argument = format!("entities[{index}]");
        check_name(&format!("{argument}.name"), &name)?;
        check_type(&format!("{argument}.entityType"), &entity_type)?;
        check_observations(&format!("{argument}.observations"), &observations)?;
        let entity = Entity::new(entity_type, &observations);
        let value = entity.to_stored(&argument)?;
        checked.push((name, entity, value));
    }
    let graph = Graph::of(toolbox);
    graph.check_room("entities", &checked.iter().map(|(name, ..)| name.as_str()).collect()).await?;
    let (mut created, mut existing) = (Vec::new(), Vec::new());
    for (name, entity, value) in checked {
        if graph.create(&name, &value).await? {
            created.push(entity.to_result(&name));
        } else {
            existing.push(name);
        }
    }
    let mut result = json!({ "entities": created });
    insert(&mut result, "existing", (!existing.is_empty()).then_some(existing));
    Ok(result)
}

pub(crate) async fn create_relations(toolbox: &Toolbox, arguments: Relations) -> Result<Value, ToolFailure> {
    let relations = check_relations(arguments)?;
    let graph = Graph::of(toolbox);
    let mut ends = Vec::new();
    for (index, Relation { from, to, .. }) in relations.iter().enumerate() {
        ends.extend([(format!("relations[{index}].from"), from), (format!("relations[{index}].to"), to)]);
    }
    check_existence(&graph, ends).await?;
    let mut created = Vec::new();
    for (index, relation) in relations.into_iter().enumerate() {
        let (argument, outgoing) = (format!("relations[{index}].from"), relation.outgoing());
        let mut is_new = false;
        let add = |entity: &mut Entity| {
            is_new = !entity.relations.contains(&outgoing);
            if is_new {
                entity.relations.push(outgoing.clone());
            }
        };
        if !graph.change(&argument, &relation.from, add).await? {
            return Err(missing(argument));
        }
        if !is_new {
            continue;
        }
        if !graph.contains(&relation.to).await? {
            // Another call has deleted the end, and may have looked for relations to it before this one was added.
            let remove = |entity: &mut Entity| entity.relations.retain(|relation| *relation != outgoing);
            graph.change(&argument, &relation.from, remove).await?;
            return Err(missing(format!("relations[{index}].to")));
        }
        created.push(relation);
    }
    Ok(json!({ "relations": created }))
}

pub(crate) async fn add_observations(toolbox: &Toolbox, arguments: Additions) -> Result<Value, ToolFailure> {
    let Additions { observations: additions } = arguments;
    check_count("observations", additions.len())?;
    for (index, Addition { entity_name, contents }) in additions.iter().enumerate() {
        check_name(&format!("observations[{index}].entityName"), entity_name)?;
        check_observations(&format!("observations[{index}].contents"), contents)?;
    }
    let graph = Graph::of(toolbox);
    let argument = |index: usize| format!("observations[{index}].entityName");
    let names = additions.iter().enumerate().map(|(index, addition)| (argument(index), &addition.entity_name));
    check_existence(&graph, names.collect()).await?;
    let mut results = Vec::new();
    for (index, Addition { entity_name, contents }) in additions.into_iter().enumerate() {
        let mut added = Vec::new();
        let add = |entity: &mut Entity| added = entity.add_observations(&contents);
        if !graph.change(&argument(index), &entity_name, add).await? {
            return Err(missing(argument(index)));
        }
        results.push(json!({ "entityName": entity_name, "addedObservations": added }));
    }
    Ok(json!({ "results": results }))
}

pub(crate) async fn delete_entities(toolbox: &Toolbox, arguments: EntityNames) -> Result<Value, ToolFailure> {
    let EntityNames { entity_names } = arguments;
    check_count("entityNames", entity_names.len())?;
    for (index, name) in entity_names.iter().enumerate() {
        check_name(&format!("entityNames[{index}]"), name)?;
    }
    let graph = Graph::of(toolbox);
    let names: BTreeSet<&str> = entity_names.iter().map(String::as_str).collect();
    let mut not_found = Vec::new();
    for name in &names {
        if !graph.delete(name).await? {
            not_found.push((*name).to_owned());
        }
    }
    // Also for entities that do not exist, because an earlier call may have failed before this step.
    graph.delete_relations_to("entityNames", &names).await?;
    Ok(deleted(names.len() - not_found.len(), "entities", not_found))
}

pub(crate) async fn delete_observations(toolbox: &Toolbox, arguments: Deletions) -> Result<Value, ToolFailure> {
    let Deletions { deletions } = arguments;
    check_count("deletions", deletions.len())?;
    for (index, Deletion { entity_name, observations }) in deletions.iter().enumerate() {
        check_name(&format!("deletions[{index}].entityName"), entity_name)?;
        check_observations(&format!("deletions[{index}].observations"), observations)?;
    }
    let graph = Graph::of(toolbox);
    let (mut count, mut not_found) = (0, Vec::new());
    for (index, Deletion { entity_name, observations }) in deletions.into_iter().enumerate() {
        let mut removed = 0;
        let argument = format!("deletions[{index}].entityName");
        let remove = |entity: &mut Entity| {
            let before = entity.observations.len();
            entity.observations.retain(|observation| !observations.contains(observation));
            removed = before - entity.observations.len();
        };
        if !graph.change(&argument, &entity_name, remove).await? {
            not_found.push(entity_name);
        }
        count += removed;
    }
    Ok(deleted(count, "observations", not_found))
}

pub(crate) async fn delete_relations(toolbox: &Toolbox, arguments: Relations) -> Result<Value, ToolFailure> {
    let relations = check_relations(arguments)?;
    let graph = Graph::of(toolbox);
    let (mut count, mut not_found) = (0, Vec::new());
    for (index, relation) in relations.into_iter().enumerate() {
        let (argument, outgoing) = (format!("relations[{index}].from"), relation.outgoing());
        let mut removed = 0;
        let remove = |entity: &mut Entity| {
            let before = entity.relations.len();
            entity.relations.retain(|stored| *stored != outgoing);
            removed = before - entity.relations.len();
        };
        if !graph.change(&argument, &relation.from, remove).await? {
            not_found.push(relation.from);
        }
        count += removed;
    }
    Ok(deleted(count, "relations", not_found))
}

/// Returns the result of a deletion. `not_found` are the names of entities that do not exist.
fn deleted(count: usize, what: &str, not_found: Vec<String>) -> Value {
    let mut result = json!({ "success": true, "message": format!("{what} deleted: {count}") });
    insert(&mut result, "not_found", (!not_found.is_empty()).then_some(not_found));
    result
}

fn check_relations(arguments: Relations) -> Result<Vec<Relation>, ToolFailure> {
    let Relations { relations } = arguments;
    check_count("relations", relations.len())?;
    for (index, relation) in relations.iter().enumerate() {
        relation.check(&format!("relations[{index}]"))?;
    }
    Ok(relations)
}

/// Checks that entities exist, each once, before anything is stored. An error names the argument.
async fn check_existence(graph: &Graph<'_>, names: Vec<(String, &String)>) -> Result<(), ToolFailure> {
    let mut found = BTreeSet::new();
    for (argument, name) in names {
        if found.insert(name) && !graph.contains(name).await? {
            return Err(missing(argument));
        }
    }
    Ok(())
}

fn check_count(argument: &str, count: usize) -> Result<(), ToolFailure> {
    if count <= ITEMS {
        return Ok(());
    }
    Err(ToolFailure::argument(argument, format!("has {count} items; the maximum is {ITEMS}")))
}

fn missing(argument: String) -> ToolFailure {
    ToolFailure::argument(argument, "no entity has this name; create_entities creates it")
}
