-- Row security does not apply to TRUNCATE, and triggers and foreign keys bypass it.
REVOKE ALL ON public.conversations, public.messages FROM PUBLIC, anon, authenticated;
GRANT SELECT, INSERT, UPDATE, DELETE ON public.conversations, public.messages TO authenticated;
GRANT SELECT, INSERT, UPDATE, DELETE ON public.conversations, public.messages TO service_role;
