//! [`Graph`]: the records of a knowledge graph.

use std::collections::BTreeSet;

use threadkeep::core::RecordQuery;
use threadkeep::memory::RecordUpdate;
use threadkeep::{JsonText, Memory, Namespace, RecordName, RecordOwner, Scope};

use super::entity::{Entity, Relation};
use crate::{ToolFailure, Toolbox};

/// The namespace of the records.
const NAMESPACE: &str = "knowledge_graph";
/// The maximum number of entities.
const ENTITIES: usize = 5_000;
/// The maximum size of the entities that one call reads.
const SCAN_BYTES: usize = 32 * 1024 * 1024;
/// The number of records that are read at a time.
const SCAN_PAGE: usize = 200;

/// The knowledge graph of a user or tenant.
///
/// An entity is one record, which also contains the relations that start at the entity. So each change of an entity is atomic, and
/// concurrent changes are all applied. The entity at the end of a relation is checked again after the relation was added, and the
/// relations to an entity are removed after it was deleted. So none of them is left, whichever call comes first.
#[derive(Debug)]
pub(super) struct Graph<'a> {
    memory: &'a Memory,
    scope: &'a Scope,
    owner: RecordOwner,
}

/// Entities in the order of their names.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    pub(super) nodes: Vec<Node>,
    /// The names of records that do not contain an entity.
    pub(super) unreadable: Vec<String>,
    /// The name after which further entities follow.
    pub(super) next: Option<String>,
}

/// An entity with its name.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) entity: Entity,
    /// The size of the record.
    pub(super) bytes: usize,
}

impl Node {
    /// Returns the relations that start at the entity.
    pub(super) fn relations(&self) -> impl Iterator<Item = Relation> {
        self.entity.relations.iter().map(|relation| Relation::new(&self.name, relation))
    }
}

impl<'a> Graph<'a> {
    /// Returns the graph of the toolbox's scope.
    pub(super) fn of(toolbox: &'a Toolbox) -> Self {
        let Toolbox { memory, scope, .. } = toolbox;
        Self { memory, scope, owner: scope.default_owner().into() }
    }

    pub(super) async fn contains(&self, name: &str) -> Result<bool, ToolFailure> {
        Ok(self.memory.find_record(self.scope, &self.owner, &record_name(name)).await?.is_some())
    }

    /// Creates an entity unless the name exists. Returns whether it was created.
    pub(super) async fn create(&self, name: &str, value: &JsonText) -> Result<bool, ToolFailure> {
        let mut is_new = false;
        self.memory
            .update_record::<ToolFailure>(self.scope, &self.owner, &record_name(name), |record| {
                is_new = record.is_none();
                Ok(if is_new { RecordUpdate::Write(value.clone()) } else { RecordUpdate::Keep })
            })
            .await?;
        Ok(is_new)
    }

    /// Changes an entity. Returns whether it exists. `change` is called again if others change the entity meanwhile.
    pub(super) async fn change(
        &self,
        argument: &str,
        name: &str,
        mut change: impl FnMut(&mut Entity),
    ) -> Result<bool, ToolFailure> {
        let mut exists = false;
        self.memory
            .update_record::<ToolFailure>(self.scope, &self.owner, &record_name(name), |record| {
                exists = record.is_some();
                let Some(record) = record else { return Ok(RecordUpdate::Keep) };
                let stored = Entity::read(record).ok_or_else(|| unreadable(argument))?;
                let mut changed = stored.clone();
                change(&mut changed);
                if changed == stored {
                    return Ok(RecordUpdate::Keep);
                }
                Ok(RecordUpdate::Write(changed.to_stored(argument)?))
            })
            .await?;
        Ok(exists)
    }

    /// Erases an entity with the relations that start at it. Returns whether it existed.
    pub(super) async fn delete(&self, name: &str) -> Result<bool, ToolFailure> {
        let mut existed = false;
        self.memory
            .update_record::<ToolFailure>(self.scope, &self.owner, &record_name(name), |record| {
                existed = record.is_some();
                Ok(if existed { RecordUpdate::Delete } else { RecordUpdate::Keep })
            })
            .await?;
        Ok(existed)
    }

    /// Erases the relations that end at the given entities.
    pub(super) async fn delete_relations_to(&self, argument: &str, names: &BTreeSet<&str>) -> Result<(), ToolFailure> {
        let mut after = None;
        loop {
            let page = self.page(after, SCAN_PAGE).await?;
            for node in &page.nodes {
                if node.entity.relations.iter().any(|relation| names.contains(relation.to.as_str())) {
                    let remove =
                        |entity: &mut Entity| entity.relations.retain(|relation| !names.contains(relation.to.as_str()));
                    self.change(argument, &node.name, remove).await?;
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(()),
            }
        }
    }

    /// Checks that entities with the given names can be created.
    pub(super) async fn check_room(&self, argument: &str, names: &BTreeSet<&str>) -> Result<(), ToolFailure> {
        let Nodes { nodes, unreadable, next } = self.scan().await?;
        let existing = nodes.iter().filter(|node| names.contains(node.name.as_str())).count();
        if next.is_none() && nodes.len() + unreadable.len() + names.len() - existing <= ENTITIES {
            return Ok(());
        }
        let reason = match next {
            None => format!("the graph has {} entities; the maximum is {ENTITIES}", nodes.len() + unreadable.len()),
            Some(_) => format!("the graph has more than {SCAN_BYTES} bytes"),
        };
        Err(ToolFailure::argument(argument, format!("{reason}; delete_entities makes room")))
    }

    /// Reads the entities after a name: `limit` records.
    pub(super) async fn page(&self, after: Option<String>, limit: usize) -> Result<Nodes, ToolFailure> {
        let after = after.map(|name| (namespace(), name));
        let query = RecordQuery { namespace: Some(namespace()), after, limit, ..RecordQuery::of(self.owner.clone()) };
        let records = self.memory.backend().store.list_records(self.scope, &query, self.memory.now()).await?;
        let next = records.last().filter(|_| records.len() == limit).map(|record| record.key.clone());
        let mut page = Nodes { next, ..Nodes::default() };
        for record in records {
            match Entity::read(&record) {
                Some(entity) => {
                    let bytes = record.value.as_str().len();
                    page.nodes.push(Node { name: record.key, entity, bytes });
                }
                None => page.unreadable.push(record.key),
            }
        }
        Ok(page)
    }

    /// Reads all entities. In a graph of more than [`SCAN_BYTES`], reads those with the first names, and sets `next`.
    pub(super) async fn scan(&self) -> Result<Nodes, ToolFailure> {
        let (mut all, mut bytes) = (Nodes::default(), 0);
        loop {
            let page = self.page(all.next.take(), SCAN_PAGE).await?;
            bytes += page.nodes.iter().map(|node| node.bytes).sum::<usize>();
            all.nodes.extend(page.nodes);
            all.unreadable.extend(page.unreadable);
            all.next = page.next;
            if all.next.is_none() || bytes > SCAN_BYTES {
                return Ok(all);
            }
        }
    }
}

fn namespace() -> Namespace {
    Namespace::App(NAMESPACE.to_owned())
}

fn record_name(name: &str) -> RecordName {
    RecordName { namespace: namespace(), key: name.to_owned() }
}

fn unreadable(argument: &str) -> ToolFailure {
    ToolFailure::argument(argument, "the record with this name does not contain an entity; delete_entities deletes it")
}
