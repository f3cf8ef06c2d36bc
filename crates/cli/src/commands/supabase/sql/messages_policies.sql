ALTER TABLE public.messages ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS messages_of_their_user ON public.messages;
CREATE POLICY messages_of_their_user ON public.messages FOR ALL TO authenticated
  USING (EXISTS (SELECT FROM public.conversations AS conversation
    WHERE conversation.id = conversation_id AND conversation.user_id = (SELECT auth.uid())))
  WITH CHECK (EXISTS (SELECT FROM public.conversations AS conversation
    WHERE conversation.id = conversation_id AND conversation.user_id = (SELECT auth.uid())));
