/** Whether the page without a server is part of this build. */
declare const __HAS_OFFLINE_PAGE__: boolean;
