-- Row security does not stand before TRUNCATE, and triggers and references see past it.
REVOKE ALL ON public.conversations, public.messages FROM PUBLIC, anon, authenticated;
GRANT SELECT, INSERT, UPDATE, DELETE ON public.conversations, public.messages TO authenticated;
GRANT SELECT, INSERT, UPDATE, DELETE ON public.conversations, public.messages TO service_role;
