/** What is known of the cost. Pure. */
import type { Analytics } from "../api/types";
import { dollars, t } from "../i18n";
import { isBuiltIn } from "../text/names";

/** Returns the total cost, or what is known of it: only messages that a model wrote have a cost, and only if the price of the model is known. */
export function costOf({ cost_usd: cost, models, roles }: Pick<Analytics, "cost_usd" | "models" | "roles">): { value: string; note?: string } {
  const total = roles["assistant"] ?? 0;
  const sum = (names: string[]) => names.reduce((count, name) => count + (models[name] ?? 0), 0);
  const [recorded, free] = [sum(Object.keys(models)), sum(Object.keys(models).filter(isBuiltIn))];
  if (total === 0) return { value: dollars(cost) };
  if (cost > 0) return recorded < total ? { value: t("at_least", { cost: dollars(cost) }), note: t("cost_recorded_for", { count: recorded, total }) } : { value: dollars(cost) };
  if (free >= total) return { value: t("free") };
  return free > 0 ? { value: t("not_known"), note: t("cost_free_for", { count: free, total }) } : { value: t("not_known") };
}
