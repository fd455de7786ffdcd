CREATE SCHEMA kronmem;
CREATE TABLE kronmem.memory (
    space integer NOT NULL,
    number integer NOT NULL,
    id uuid NOT NULL,
    created double precision NOT NULL,
    expires double precision,
    accessed integer NOT NULL,
    pinned boolean NOT NULL,
    digest bytea NOT NULL,
    owner text NOT NULL COLLATE pg_catalog."C",
    session text NOT NULL COLLATE pg_catalog."C",
    type text NOT NULL COLLATE pg_catalog."C",
    tags text NOT NULL,
    metadata text NOT NULL,
    content text NOT NULL COLLATE pg_catalog."C"
)
PARTITION BY HASH (space);
CREATE TABLE kronmem.memory_0 (
    space integer CONSTRAINT memory_space_not_null NOT NULL,
    number integer CONSTRAINT memory_number_not_null NOT NULL,
    id uuid CONSTRAINT memory_id_not_null NOT NULL,
    created double precision CONSTRAINT memory_created_not_null NOT NULL,
    expires double precision,
    accessed integer CONSTRAINT memory_accessed_not_null NOT NULL,
    pinned boolean CONSTRAINT memory_pinned_not_null NOT NULL,
    digest bytea CONSTRAINT memory_digest_not_null NOT NULL,
    owner text CONSTRAINT memory_owner_not_null NOT NULL COLLATE pg_catalog."C",
    session text CONSTRAINT memory_session_not_null NOT NULL COLLATE pg_catalog."C",
    type text CONSTRAINT memory_type_not_null NOT NULL COLLATE pg_catalog."C",
    tags text CONSTRAINT memory_tags_not_null NOT NULL,
    metadata text CONSTRAINT memory_metadata_not_null NOT NULL,
    content text CONSTRAINT memory_content_not_null NOT NULL COLLATE pg_catalog."C"
)
WITH (fillfactor='85');
CREATE TABLE kronmem.memory_1 (
    space integer CONSTRAINT memory_space_not_null NOT NULL,
    number integer CONSTRAINT memory_number_not_null NOT NULL,
    id uuid CONSTRAINT memory_id_not_null NOT NULL,
    created double precision CONSTRAINT memory_created_not_null NOT NULL,
    expires double precision,
    accessed integer CONSTRAINT memory_accessed_not_null NOT NULL,
    pinned boolean CONSTRAINT memory_pinned_not_null NOT NULL,
    digest bytea CONSTRAINT memory_digest_not_null NOT NULL,
    owner text CONSTRAINT memory_owner_not_null NOT NULL COLLATE pg_catalog."C",
    session text CONSTRAINT memory_session_not_null NOT NULL COLLATE pg_catalog."C",
    type text CONSTRAINT memory_type_not_null NOT NULL COLLATE pg_catalog."C",
    tags text CONSTRAINT memory_tags_not_null NOT NULL,
    metadata text CONSTRAINT memory_metadata_not_null NOT NULL,
    content text CONSTRAINT memory_content_not_null NOT NULL COLLATE pg_catalog."C"
)
WITH (fillfactor='85');
CREATE TABLE kronmem.posting (
    space integer NOT NULL,
    number integer NOT NULL,
    times integer NOT NULL,
    length integer NOT NULL,
    term text NOT NULL COLLATE pg_catalog."C"
)
PARTITION BY HASH (space);
CREATE TABLE kronmem.posting_0 (
    space integer CONSTRAINT posting_space_not_null NOT NULL,
    number integer CONSTRAINT posting_number_not_null NOT NULL,
    times integer CONSTRAINT posting_times_not_null NOT NULL,
    length integer CONSTRAINT posting_length_not_null NOT NULL,
    term text CONSTRAINT posting_term_not_null NOT NULL COLLATE pg_catalog."C"
)
WITH (autovacuum_vacuum_insert_scale_factor='0.05');
CREATE TABLE kronmem.posting_1 (
    space integer CONSTRAINT posting_space_not_null NOT NULL,
    number integer CONSTRAINT posting_number_not_null NOT NULL,
    times integer CONSTRAINT posting_times_not_null NOT NULL,
    length integer CONSTRAINT posting_length_not_null NOT NULL,
    term text CONSTRAINT posting_term_not_null NOT NULL COLLATE pg_catalog."C"
)
WITH (autovacuum_vacuum_insert_scale_factor='0.05');
CREATE TABLE kronmem.receipt (
    owner text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    client text NOT NULL COLLATE pg_catalog."C",
    memory uuid NOT NULL,
    body bytea NOT NULL,
    deduplicated boolean NOT NULL,
    at double precision NOT NULL
);
CREATE TABLE kronmem.space (
    id integer NOT NULL,
    owner text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    description text,
    metadata text NOT NULL,
    created double precision NOT NULL,
    count integer NOT NULL,
    words bigint NOT NULL,
    last integer NOT NULL
)
WITH (fillfactor='50');
ALTER TABLE kronmem.space ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME kronmem.space_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE kronmem.state (
    space integer NOT NULL,
    key text NOT NULL COLLATE pg_catalog."C",
    owner text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL,
    created double precision NOT NULL,
    updated double precision NOT NULL
);
CREATE TABLE kronmem.version (
    number integer NOT NULL
);
ALTER TABLE ONLY kronmem.memory ATTACH PARTITION kronmem.memory_0 FOR VALUES WITH (modulus 2, remainder 0);
ALTER TABLE ONLY kronmem.memory ATTACH PARTITION kronmem.memory_1 FOR VALUES WITH (modulus 2, remainder 1);
ALTER TABLE ONLY kronmem.posting ATTACH PARTITION kronmem.posting_0 FOR VALUES WITH (modulus 2, remainder 0);
ALTER TABLE ONLY kronmem.posting ATTACH PARTITION kronmem.posting_1 FOR VALUES WITH (modulus 2, remainder 1);
INSERT INTO kronmem.memory_0 VALUES (1, 3, 'd3dc9551-39e4-4b88-b626-a7abc11fab97', 1794855435.9781291, NULL, 0, false, '\xac496ebce8f2bc0b7cd58de78fed321b', '', '', 'preference', '["style"]', '{}', 'User prefers concise answers');
INSERT INTO kronmem.memory_0 VALUES (1, 7, '393c922c-ed02-4be5-90a4-c78443d14f6e', 1794855436.0178723, NULL, 0, false, '\xa58e877fb322a0d5bec4f3d84d9231ac', '', 'planning', 'decision', '[]', '{}', 'We decided to ship on Friday');
INSERT INTO kronmem.memory_0 VALUES (1, 10, '0a087733-fda7-47f2-96fb-6f6338f09d50', 1794855436.0300772, NULL, 0, false, '\xa58e877fb322a0d5bec4f3d84d9231ac', '', 'retro', 'decision', '[]', '{}', 'We decided to ship on Friday');
INSERT INTO kronmem.memory_0 VALUES (1, 13, 'eaac0abe-f3ce-4311-a5c3-7e3451cce588', 1794855436.0419593, NULL, 0, true, '\x65c261fbf2e0d5e38f8e7a7a0dbc61ed', '', '', 'fact', '[]', '{}', 'Ada is allergic to peanuts');
INSERT INTO kronmem.memory_0 VALUES (1, 14, 'd039fa16-2314-46f0-8c3f-3e9097328ea3', 1794855436.0576258, 2110215436.0576258, 0, false, '\xcf6d843a46bb90dc11090c8033eee037', '', '', 'temporary', '[]', '{}', 'The visitor badge runs out');
INSERT INTO kronmem.memory_0 VALUES (1, 15, '0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d', 1794855436.0714135, NULL, 0, false, '\x138e98236de7beecf17add373e79b4ca', '', '', 'context', '[]', '{}', 'Paragraph 1 of the handbook speaks about harbour. It says that the harbour is looked after by Ada, who keeps the records of every crane in the north tower. Paragraph 2 of the handbook speaks about kitchen. It says that the kitchen is looked after by Bob, who keeps the records of every kettle in the cellar. Paragraph 3 of the handbook speaks about garden. It says that the garden is looked after by Cleo, who keeps the records of every spade in the shed. Paragraph 4 of the handbook speaks about library. It says that the library is looked after by Dora, who keeps the records of every ladder in the gallery. Paragraph 5 of the handbook speaks about observatory. It says that the observatory is looked after by Emil, who keeps the records of every telescope in the dome. Paragraph 6 of the handbook speaks about workshop. It says that the workshop is looked after by Finn, who keeps the records of every lathe in the annex.');
INSERT INTO kronmem.memory_0 VALUES (1, 16, '17f5757e-307a-45e7-b511-baaaa225c078', 1794855436.0838652, NULL, 0, false, '\x0389ed122f8ff9399d9d259995a5258d', '', '', 'fact', '[]', '{}', 'Ünïcode: 東京都に住んでいます 🎉');
INSERT INTO kronmem.memory_0 VALUES (1, 4, '1d27ce79-7756-4230-93dc-ee4dd16786ab', 1794855436.0102384, NULL, 5, false, '\x33e7599b43b9819088a167dc5fd9af27', '', '', 'fact', '["stack", "db"]', '{"source": "README", "n": 3}', 'The project uses PostgreSQL 16');
INSERT INTO kronmem.memory_0 VALUES (2, 3, '9127ff9e-c3a5-45bc-b1f7-5c88489795dd', 1794855436.1734757, NULL, 0, false, '\x921016ade02c2957cbca5d5156f405fa', '', '', 'fact', '[]', '{}', 'Bob measured 0 knots at buoy 0');
INSERT INTO kronmem.memory_0 VALUES (2, 4, '4bb8bdd9-f4af-4055-8730-07dc091b0e61', 1794855436.1734757, NULL, 0, false, '\x9e8995f084c8cbffac92967ca1c48aec', '', '', 'fact', '[]', '{}', 'Bob measured 1 knots at buoy 7');
INSERT INTO kronmem.memory_0 VALUES (2, 5, '2aa7be94-f4fb-4845-bbb0-b5330410d2c6', 1794855436.1734757, NULL, 0, false, '\x8be6377f4168284704aefe554b2a7e04', '', '', 'fact', '[]', '{}', 'Bob measured 2 knots at buoy 14');
INSERT INTO kronmem.memory_0 VALUES (2, 6, '3d748ff4-f635-4b35-967e-805c67bf3ff1', 1794855436.1734757, NULL, 0, false, '\x7a432265751d13dd457e92fdec35cf72', '', '', 'fact', '[]', '{}', 'Bob measured 3 knots at buoy 21');
INSERT INTO kronmem.memory_0 VALUES (2, 7, '43fba58e-7002-42d6-86d3-e763045c4fc9', 1794855436.1734757, NULL, 0, false, '\x36e5be9ee0dbbafb9c67442de9c85119', '', '', 'fact', '[]', '{}', 'Bob measured 4 knots at buoy 28');
INSERT INTO kronmem.memory_0 VALUES (2, 8, 'bd1050a5-10da-4209-9140-59d4c5a28a5a', 1794855436.1734757, NULL, 0, false, '\x990b98f8b5c7eebc59740bbee541478c', '', '', 'fact', '[]', '{}', 'Bob measured 5 knots at buoy 35');
INSERT INTO kronmem.memory_0 VALUES (2, 9, '0ace84eb-ead2-4985-bafb-2824203f522e', 1794855436.1734757, NULL, 0, false, '\xef48478ba84b6f9e4b2882f13e3771b9', '', '', 'fact', '[]', '{}', 'Bob measured 6 knots at buoy 42');
INSERT INTO kronmem.memory_0 VALUES (2, 10, '697a9d41-69da-4a75-9e27-ade35958de95', 1794855436.1734757, NULL, 0, false, '\x74720735b9259db9d01bc72c99ba2a29', '', '', 'fact', '[]', '{}', 'Bob measured 7 knots at buoy 49');
INSERT INTO kronmem.memory_0 VALUES (2, 11, 'fd9d1c55-6c02-4fad-9d4b-84876917a9c3', 1794855436.1734757, NULL, 0, false, '\x2924290558b2cc38902017040f43f82f', '', '', 'fact', '[]', '{}', 'Bob measured 8 knots at buoy 56');
INSERT INTO kronmem.memory_0 VALUES (2, 12, '80d4333b-efdc-4909-af28-88d92c04d3c3', 1794855436.1734757, NULL, 0, false, '\x96b75331defec5a59f6fce9787d2a0b2', '', '', 'fact', '[]', '{}', 'Bob measured 9 knots at buoy 63');
INSERT INTO kronmem.memory_0 VALUES (2, 13, 'c94b9958-4638-48d9-ad78-78bbcb8b63af', 1794855436.1734757, NULL, 0, false, '\xe87befb18221624629243349e7079186', '', '', 'fact', '[]', '{}', 'Bob measured 10 knots at buoy 70');
INSERT INTO kronmem.memory_0 VALUES (2, 14, 'b503a665-1c78-4244-8154-4726891947cd', 1794855436.1734757, NULL, 0, false, '\x5af1a14528d84e96fb4be58b94aa9220', '', '', 'fact', '[]', '{}', 'Bob measured 11 knots at buoy 77');
INSERT INTO kronmem.memory_0 VALUES (2, 15, '741f6b6b-fa12-4416-8088-47ef21886f4f', 1794855436.1734757, NULL, 0, false, '\x43a53139d1485fd28a0c1bbb2a87e5b8', '', '', 'fact', '[]', '{}', 'Bob measured 12 knots at buoy 84');
INSERT INTO kronmem.memory_0 VALUES (2, 16, '9b8e79f4-d130-4ad1-b965-17d885dea0d3', 1794855436.1734757, NULL, 0, false, '\x350b74f06d3ce25a82b00af23e136b67', '', '', 'fact', '[]', '{}', 'Bob measured 13 knots at buoy 91');
INSERT INTO kronmem.memory_0 VALUES (2, 17, '8c8cdba7-36a9-4974-b617-4735dd64ead8', 1794855436.1734757, NULL, 0, false, '\x086649f4745e256fd237092cc569e9d2', '', '', 'fact', '[]', '{}', 'Bob measured 14 knots at buoy 98');
INSERT INTO kronmem.memory_0 VALUES (2, 18, '9d95cdce-b441-410b-96bb-0f724e12df42', 1794855436.1734757, NULL, 0, false, '\x54cf41ee324bc65fc268b847e8bdab2e', '', '', 'fact', '[]', '{}', 'Bob measured 15 knots at buoy 105');
INSERT INTO kronmem.memory_0 VALUES (2, 19, 'd945dc50-8d37-4bc7-8150-01b4613cd356', 1794855436.1734757, NULL, 0, false, '\x8d8338dc115a75b9a0425744fc3df642', '', '', 'fact', '[]', '{}', 'Bob measured 16 knots at buoy 112');
INSERT INTO kronmem.memory_0 VALUES (2, 20, '3abe74ec-6767-4591-a927-5a9a3cd83095', 1794855436.1734757, NULL, 0, false, '\xe8fe6285825a708174d18fcf29322039', '', '', 'fact', '[]', '{}', 'Bob measured 17 knots at buoy 119');
INSERT INTO kronmem.memory_0 VALUES (2, 21, '5c773e2b-f891-464d-81ad-85df3b40d6e9', 1794855436.1734757, NULL, 0, false, '\xf3ce51ec676840d971ee71959b2b90a9', '', '', 'fact', '[]', '{}', 'Bob measured 18 knots at buoy 126');
INSERT INTO kronmem.memory_0 VALUES (2, 22, '6c9cbb91-a86e-4fc8-ad05-aace89a89e7f', 1794855436.1734757, NULL, 0, false, '\x18c83f5928d3ff2476c0a2008357b5e8', '', '', 'fact', '[]', '{}', 'Bob measured 19 knots at buoy 133');
INSERT INTO kronmem.memory_0 VALUES (2, 23, '7b55d736-a745-4396-b043-376a9f0c1050', 1794855436.1734757, NULL, 0, false, '\x8ea35bc3a30a21f23fa624b775b70f7c', '', '', 'fact', '[]', '{}', 'Bob measured 20 knots at buoy 140');
INSERT INTO kronmem.memory_0 VALUES (2, 24, 'a50e6572-9f6a-40fa-b797-8095b25df410', 1794855436.1734757, NULL, 0, false, '\xaab8abec6d84bc1d74042acc6a6e5260', '', '', 'fact', '[]', '{}', 'Bob measured 21 knots at buoy 147');
INSERT INTO kronmem.memory_0 VALUES (2, 25, '06c2d39b-7459-41d3-9887-8907aa5dec87', 1794855436.1734757, NULL, 0, false, '\xbe24ddda7fbacb270b3c397527cfcf79', '', '', 'fact', '[]', '{}', 'Bob measured 22 knots at buoy 154');
INSERT INTO kronmem.memory_0 VALUES (2, 26, '63ac0504-a9a4-42d4-b75c-6769fd5dc94b', 1794855436.1734757, NULL, 0, false, '\x043f73c6e917ace59fe5336aeaf8e24e', '', '', 'fact', '[]', '{}', 'Bob measured 23 knots at buoy 161');
INSERT INTO kronmem.memory_0 VALUES (2, 27, 'db0a9e03-043b-4520-b059-3cbbdd580ff0', 1794855436.1734757, NULL, 0, false, '\x21d1557a36a63b0e786853a1396bb1c9', '', '', 'fact', '[]', '{}', 'Bob measured 24 knots at buoy 168');
INSERT INTO kronmem.memory_0 VALUES (2, 28, '1429da43-97d3-4af1-9428-ea88448ad650', 1794855436.1734757, NULL, 0, false, '\x28edd761d6ac0138ac19e975e574fd88', '', '', 'fact', '[]', '{}', 'Bob measured 25 knots at buoy 175');
INSERT INTO kronmem.memory_0 VALUES (2, 29, 'c4319d06-5a1f-4477-bd80-327b997ff9fe', 1794855436.1734757, NULL, 0, false, '\xcea04c4628093c3c599bc2dc5c27600a', '', '', 'fact', '[]', '{}', 'Bob measured 26 knots at buoy 182');
INSERT INTO kronmem.memory_0 VALUES (2, 30, '9682b4f8-02d2-4d57-8f7c-644d9346adde', 1794855436.1734757, NULL, 0, false, '\x81b9451af5b2b52e5c02900fba922850', '', '', 'fact', '[]', '{}', 'Bob measured 27 knots at buoy 189');
INSERT INTO kronmem.memory_0 VALUES (2, 31, '974caf64-19cd-4b6e-ad06-8a2d3c436b23', 1794855436.1734757, NULL, 0, false, '\xfbf1dda625afe9f48d0e5b8bdda21164', '', '', 'fact', '[]', '{}', 'Bob measured 28 knots at buoy 196');
INSERT INTO kronmem.memory_0 VALUES (2, 32, 'ee78d42f-8cd6-4e3e-9347-10dc5e4fd593', 1794855436.1734757, NULL, 0, false, '\x8a4d73904e10916826576e1d02d006f6', '', '', 'fact', '[]', '{}', 'Bob measured 29 knots at buoy 203');
INSERT INTO kronmem.memory_0 VALUES (2, 33, '76968771-6e10-4d42-9b5c-01aca021553e', 1794855436.1734757, NULL, 0, false, '\x4151032a906d900ee1070f2446b42d26', '', '', 'fact', '[]', '{}', 'Bob measured 30 knots at buoy 210');
INSERT INTO kronmem.memory_0 VALUES (2, 34, '20d3c4b1-77a4-4501-904d-b753fa35a223', 1794855436.1734757, NULL, 0, false, '\x88670cbc2df3b60ef4fb5f18b332d497', '', '', 'fact', '[]', '{}', 'Bob measured 31 knots at buoy 217');
INSERT INTO kronmem.memory_0 VALUES (2, 35, '66d86652-16b6-48c1-b62b-69b35d09246e', 1794855436.1734757, NULL, 0, false, '\xa0cda3758ce453caa07e78245fb794c2', '', '', 'fact', '[]', '{}', 'Bob measured 32 knots at buoy 224');
INSERT INTO kronmem.memory_0 VALUES (2, 36, '80ae5f1f-1a25-4ed2-95f1-d8f29952da80', 1794855436.1734757, NULL, 0, false, '\x2916ab6f7227fd422f2f08cf5790ac23', '', '', 'fact', '[]', '{}', 'Bob measured 33 knots at buoy 231');
INSERT INTO kronmem.memory_0 VALUES (2, 37, 'a4988456-772e-4ab9-8220-4effb9fe0d3d', 1794855436.1734757, NULL, 0, false, '\x4350a367a0887657c802ce023cdf6b80', '', '', 'fact', '[]', '{}', 'Bob measured 34 knots at buoy 238');
INSERT INTO kronmem.memory_0 VALUES (2, 38, 'f5cfb168-ceea-4725-8d8c-788ef3b640db', 1794855436.1734757, NULL, 0, false, '\x38b43836f3c5ae0cd415927b1a0b8387', '', '', 'fact', '[]', '{}', 'Bob measured 35 knots at buoy 245');
INSERT INTO kronmem.memory_0 VALUES (2, 39, 'de38fa6a-4df3-4d3c-851e-703a80977bd9', 1794855436.1734757, NULL, 0, false, '\xa0cd1bebe7d712496c39cc5ccfbe2b58', '', '', 'fact', '[]', '{}', 'Bob measured 36 knots at buoy 252');
INSERT INTO kronmem.memory_0 VALUES (2, 40, 'a597913a-6405-4247-ac24-c7c99bc6f171', 1794855436.1734757, NULL, 0, false, '\x5c870727d5c655bfa56ebc2c0197034f', '', '', 'fact', '[]', '{}', 'Bob measured 37 knots at buoy 259');
INSERT INTO kronmem.memory_0 VALUES (2, 41, '257e7d11-014f-4d2f-b816-37710b9ea556', 1794855436.1734757, NULL, 0, false, '\x1e71baa1cf5bfd79b3dd597236db210f', '', '', 'fact', '[]', '{}', 'Bob measured 38 knots at buoy 266');
INSERT INTO kronmem.memory_0 VALUES (2, 42, '95847bbd-2e83-4832-914a-3d864c542add', 1794855436.1734757, NULL, 0, false, '\xad28012e29dd5441d7ad3ef073ac4fd1', '', '', 'fact', '[]', '{}', 'Bob measured 39 knots at buoy 273');
INSERT INTO kronmem.posting_0 VALUES (1, 3, 1, 4, 'user');
INSERT INTO kronmem.posting_0 VALUES (1, 3, 1, 4, 'prefer');
INSERT INTO kronmem.posting_0 VALUES (1, 3, 1, 4, 'concis');
INSERT INTO kronmem.posting_0 VALUES (1, 3, 1, 4, 'answer');
INSERT INTO kronmem.posting_0 VALUES (1, 3, 0, 0, '
tpreference');
INSERT INTO kronmem.posting_0 VALUES (1, 3, 0, 0, '
gstyle');
INSERT INTO kronmem.posting_0 VALUES (1, 4, 1, 4, 'project');
INSERT INTO kronmem.posting_0 VALUES (1, 4, 1, 4, 'use');
INSERT INTO kronmem.posting_0 VALUES (1, 4, 1, 4, 'postgresql');
INSERT INTO kronmem.posting_0 VALUES (1, 4, 1, 4, '16');
INSERT INTO kronmem.posting_0 VALUES (1, 4, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (1, 4, 0, 0, '
gstack');
INSERT INTO kronmem.posting_0 VALUES (1, 4, 0, 0, '
gdb');
INSERT INTO kronmem.posting_0 VALUES (1, 7, 1, 3, 'decid');
INSERT INTO kronmem.posting_0 VALUES (1, 7, 1, 3, 'ship');
INSERT INTO kronmem.posting_0 VALUES (1, 7, 1, 3, 'friday');
INSERT INTO kronmem.posting_0 VALUES (1, 7, 0, 0, '
splanning');
INSERT INTO kronmem.posting_0 VALUES (1, 7, 0, 0, '
tdecision');
INSERT INTO kronmem.posting_0 VALUES (1, 10, 1, 3, 'decid');
INSERT INTO kronmem.posting_0 VALUES (1, 10, 1, 3, 'ship');
INSERT INTO kronmem.posting_0 VALUES (1, 10, 1, 3, 'friday');
INSERT INTO kronmem.posting_0 VALUES (1, 10, 0, 0, '
sretro');
INSERT INTO kronmem.posting_0 VALUES (1, 10, 0, 0, '
tdecision');
INSERT INTO kronmem.posting_0 VALUES (1, 13, 1, 3, 'ada');
INSERT INTO kronmem.posting_0 VALUES (1, 13, 1, 3, 'allerg');
INSERT INTO kronmem.posting_0 VALUES (1, 13, 1, 3, 'peanut');
INSERT INTO kronmem.posting_0 VALUES (1, 13, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (1, 14, 1, 3, 'visitor');
INSERT INTO kronmem.posting_0 VALUES (1, 14, 1, 3, 'badg');
INSERT INTO kronmem.posting_0 VALUES (1, 14, 1, 3, 'run');
INSERT INTO kronmem.posting_0 VALUES (1, 14, 0, 0, '
ttemporary');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 6, 85, 'paragraph');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, '1');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 6, 85, 'handbook');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 6, 85, 'speak');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 2, 85, 'harbour');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 6, 85, 'say');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 6, 85, 'look');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, 'ada');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 6, 85, 'keep');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 6, 85, 'record');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 6, 85, 'everi');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, 'crane');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, 'north');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, 'tower');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, '2');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 2, 85, 'kitchen');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, 'bob');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, 'kettl');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, 'cellar');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, '3');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 2, 85, 'garden');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, 'cleo');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, 'spade');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, 'shed');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, '4');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 2, 85, 'librari');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, 'dora');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, 'ladder');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, 'galleri');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, '5');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 2, 85, 'observatori');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, 'emil');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, 'telescop');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, 'dome');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, '6');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 2, 85, 'workshop');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, 'finn');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, 'lath');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 1, 85, 'annex');
INSERT INTO kronmem.posting_0 VALUES (1, 15, 0, 0, '
tcontext');
INSERT INTO kronmem.posting_0 VALUES (1, 16, 1, 15, 'unicod');
INSERT INTO kronmem.posting_0 VALUES (1, 16, 1, 15, '東');
INSERT INTO kronmem.posting_0 VALUES (1, 16, 1, 15, '京');
INSERT INTO kronmem.posting_0 VALUES (1, 16, 1, 15, '都');
INSERT INTO kronmem.posting_0 VALUES (1, 16, 1, 15, '住');
INSERT INTO kronmem.posting_0 VALUES (1, 16, 1, 15, '東京');
INSERT INTO kronmem.posting_0 VALUES (1, 16, 1, 15, '京都');
INSERT INTO kronmem.posting_0 VALUES (1, 16, 1, 15, '都に');
INSERT INTO kronmem.posting_0 VALUES (1, 16, 1, 15, 'に住');
INSERT INTO kronmem.posting_0 VALUES (1, 16, 1, 15, '住ん');
INSERT INTO kronmem.posting_0 VALUES (1, 16, 1, 15, 'んで');
INSERT INTO kronmem.posting_0 VALUES (1, 16, 1, 15, 'でい');
INSERT INTO kronmem.posting_0 VALUES (1, 16, 1, 15, 'いま');
INSERT INTO kronmem.posting_0 VALUES (1, 16, 1, 15, 'ます');
INSERT INTO kronmem.posting_0 VALUES (1, 16, 1, 15, '🎉');
INSERT INTO kronmem.posting_0 VALUES (1, 16, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 3, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 3, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 3, 2, 6, '0');
INSERT INTO kronmem.posting_0 VALUES (2, 3, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 3, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 3, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 4, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 4, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 4, 1, 6, '1');
INSERT INTO kronmem.posting_0 VALUES (2, 4, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 4, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 4, 1, 6, '7');
INSERT INTO kronmem.posting_0 VALUES (2, 4, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 5, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 5, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 5, 1, 6, '2');
INSERT INTO kronmem.posting_0 VALUES (2, 5, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 5, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 5, 1, 6, '14');
INSERT INTO kronmem.posting_0 VALUES (2, 5, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 6, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 6, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 6, 1, 6, '3');
INSERT INTO kronmem.posting_0 VALUES (2, 6, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 6, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 6, 1, 6, '21');
INSERT INTO kronmem.posting_0 VALUES (2, 6, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 7, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 7, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 7, 1, 6, '4');
INSERT INTO kronmem.posting_0 VALUES (2, 7, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 7, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 7, 1, 6, '28');
INSERT INTO kronmem.posting_0 VALUES (2, 7, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 8, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 8, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 8, 1, 6, '5');
INSERT INTO kronmem.posting_0 VALUES (2, 8, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 8, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 8, 1, 6, '35');
INSERT INTO kronmem.posting_0 VALUES (2, 8, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 9, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 9, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 9, 1, 6, '6');
INSERT INTO kronmem.posting_0 VALUES (2, 9, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 9, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 9, 1, 6, '42');
INSERT INTO kronmem.posting_0 VALUES (2, 9, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 10, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 10, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 10, 1, 6, '7');
INSERT INTO kronmem.posting_0 VALUES (2, 10, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 10, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 10, 1, 6, '49');
INSERT INTO kronmem.posting_0 VALUES (2, 10, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 11, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 11, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 11, 1, 6, '8');
INSERT INTO kronmem.posting_0 VALUES (2, 11, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 11, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 11, 1, 6, '56');
INSERT INTO kronmem.posting_0 VALUES (2, 11, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 12, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 12, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 12, 1, 6, '9');
INSERT INTO kronmem.posting_0 VALUES (2, 12, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 12, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 12, 1, 6, '63');
INSERT INTO kronmem.posting_0 VALUES (2, 12, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 13, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 13, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 13, 1, 6, '10');
INSERT INTO kronmem.posting_0 VALUES (2, 13, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 13, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 13, 1, 6, '70');
INSERT INTO kronmem.posting_0 VALUES (2, 13, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 14, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 14, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 14, 1, 6, '11');
INSERT INTO kronmem.posting_0 VALUES (2, 14, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 14, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 14, 1, 6, '77');
INSERT INTO kronmem.posting_0 VALUES (2, 14, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 15, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 15, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 15, 1, 6, '12');
INSERT INTO kronmem.posting_0 VALUES (2, 15, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 15, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 15, 1, 6, '84');
INSERT INTO kronmem.posting_0 VALUES (2, 15, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 16, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 16, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 16, 1, 6, '13');
INSERT INTO kronmem.posting_0 VALUES (2, 16, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 16, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 16, 1, 6, '91');
INSERT INTO kronmem.posting_0 VALUES (2, 16, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 17, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 17, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 17, 1, 6, '14');
INSERT INTO kronmem.posting_0 VALUES (2, 17, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 17, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 17, 1, 6, '98');
INSERT INTO kronmem.posting_0 VALUES (2, 17, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 18, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 18, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 18, 1, 6, '15');
INSERT INTO kronmem.posting_0 VALUES (2, 18, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 18, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 18, 1, 6, '105');
INSERT INTO kronmem.posting_0 VALUES (2, 18, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 19, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 19, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 19, 1, 6, '16');
INSERT INTO kronmem.posting_0 VALUES (2, 19, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 19, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 19, 1, 6, '112');
INSERT INTO kronmem.posting_0 VALUES (2, 19, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 20, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 20, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 20, 1, 6, '17');
INSERT INTO kronmem.posting_0 VALUES (2, 20, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 20, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 20, 1, 6, '119');
INSERT INTO kronmem.posting_0 VALUES (2, 20, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 21, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 21, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 21, 1, 6, '18');
INSERT INTO kronmem.posting_0 VALUES (2, 21, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 21, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 21, 1, 6, '126');
INSERT INTO kronmem.posting_0 VALUES (2, 21, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 22, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 22, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 22, 1, 6, '19');
INSERT INTO kronmem.posting_0 VALUES (2, 22, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 22, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 22, 1, 6, '133');
INSERT INTO kronmem.posting_0 VALUES (2, 22, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 23, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 23, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 23, 1, 6, '20');
INSERT INTO kronmem.posting_0 VALUES (2, 23, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 23, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 23, 1, 6, '140');
INSERT INTO kronmem.posting_0 VALUES (2, 23, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 24, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 24, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 24, 1, 6, '21');
INSERT INTO kronmem.posting_0 VALUES (2, 24, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 24, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 24, 1, 6, '147');
INSERT INTO kronmem.posting_0 VALUES (2, 24, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 25, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 25, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 25, 1, 6, '22');
INSERT INTO kronmem.posting_0 VALUES (2, 25, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 25, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 25, 1, 6, '154');
INSERT INTO kronmem.posting_0 VALUES (2, 25, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 26, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 26, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 26, 1, 6, '23');
INSERT INTO kronmem.posting_0 VALUES (2, 26, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 26, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 26, 1, 6, '161');
INSERT INTO kronmem.posting_0 VALUES (2, 26, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 27, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 27, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 27, 1, 6, '24');
INSERT INTO kronmem.posting_0 VALUES (2, 27, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 27, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 27, 1, 6, '168');
INSERT INTO kronmem.posting_0 VALUES (2, 27, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 28, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 28, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 28, 1, 6, '25');
INSERT INTO kronmem.posting_0 VALUES (2, 28, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 28, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 28, 1, 6, '175');
INSERT INTO kronmem.posting_0 VALUES (2, 28, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 29, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 29, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 29, 1, 6, '26');
INSERT INTO kronmem.posting_0 VALUES (2, 29, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 29, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 29, 1, 6, '182');
INSERT INTO kronmem.posting_0 VALUES (2, 29, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 30, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 30, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 30, 1, 6, '27');
INSERT INTO kronmem.posting_0 VALUES (2, 30, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 30, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 30, 1, 6, '189');
INSERT INTO kronmem.posting_0 VALUES (2, 30, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 31, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 31, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 31, 1, 6, '28');
INSERT INTO kronmem.posting_0 VALUES (2, 31, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 31, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 31, 1, 6, '196');
INSERT INTO kronmem.posting_0 VALUES (2, 31, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 32, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 32, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 32, 1, 6, '29');
INSERT INTO kronmem.posting_0 VALUES (2, 32, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 32, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 32, 1, 6, '203');
INSERT INTO kronmem.posting_0 VALUES (2, 32, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 33, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 33, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 33, 1, 6, '30');
INSERT INTO kronmem.posting_0 VALUES (2, 33, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 33, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 33, 1, 6, '210');
INSERT INTO kronmem.posting_0 VALUES (2, 33, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 34, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 34, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 34, 1, 6, '31');
INSERT INTO kronmem.posting_0 VALUES (2, 34, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 34, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 34, 1, 6, '217');
INSERT INTO kronmem.posting_0 VALUES (2, 34, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 35, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 35, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 35, 1, 6, '32');
INSERT INTO kronmem.posting_0 VALUES (2, 35, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 35, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 35, 1, 6, '224');
INSERT INTO kronmem.posting_0 VALUES (2, 35, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 36, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 36, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 36, 1, 6, '33');
INSERT INTO kronmem.posting_0 VALUES (2, 36, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 36, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 36, 1, 6, '231');
INSERT INTO kronmem.posting_0 VALUES (2, 36, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 37, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 37, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 37, 1, 6, '34');
INSERT INTO kronmem.posting_0 VALUES (2, 37, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 37, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 37, 1, 6, '238');
INSERT INTO kronmem.posting_0 VALUES (2, 37, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 38, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 38, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 38, 1, 6, '35');
INSERT INTO kronmem.posting_0 VALUES (2, 38, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 38, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 38, 1, 6, '245');
INSERT INTO kronmem.posting_0 VALUES (2, 38, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 39, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 39, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 39, 1, 6, '36');
INSERT INTO kronmem.posting_0 VALUES (2, 39, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 39, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 39, 1, 6, '252');
INSERT INTO kronmem.posting_0 VALUES (2, 39, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 40, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 40, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 40, 1, 6, '37');
INSERT INTO kronmem.posting_0 VALUES (2, 40, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 40, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 40, 1, 6, '259');
INSERT INTO kronmem.posting_0 VALUES (2, 40, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 41, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 41, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 41, 1, 6, '38');
INSERT INTO kronmem.posting_0 VALUES (2, 41, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 41, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 41, 1, 6, '266');
INSERT INTO kronmem.posting_0 VALUES (2, 41, 0, 0, '
tfact');
INSERT INTO kronmem.posting_0 VALUES (2, 42, 1, 6, 'bob');
INSERT INTO kronmem.posting_0 VALUES (2, 42, 1, 6, 'measur');
INSERT INTO kronmem.posting_0 VALUES (2, 42, 1, 6, '39');
INSERT INTO kronmem.posting_0 VALUES (2, 42, 1, 6, 'knot');
INSERT INTO kronmem.posting_0 VALUES (2, 42, 1, 6, 'buoy');
INSERT INTO kronmem.posting_0 VALUES (2, 42, 1, 6, '273');
INSERT INTO kronmem.posting_0 VALUES (2, 42, 0, 0, '
tfact');
INSERT INTO kronmem.receipt VALUES ('', 'user-ada', 'd3dc9551-39e4-4b88-b626-a7abc11fab97', 'd3dc9551-39e4-4b88-b626-a7abc11fab97', '\xb0a20efc570100bda4e0d80382eb02f4a0a17fd721542bcdae9c55a4eb7a0a23', false, 1794855435.9781291);
INSERT INTO kronmem.receipt VALUES ('', 'user-ada', '1d27ce79-7756-4230-93dc-ee4dd16786ab', '1d27ce79-7756-4230-93dc-ee4dd16786ab', '\x1e004904bef6eca7614b92e0cb496f513b3f40a9ca184a0f18472e5ae4dcbeeb', false, 1794855436.0102384);
INSERT INTO kronmem.receipt VALUES ('', 'user-ada', '393c922c-ed02-4be5-90a4-c78443d14f6e', '393c922c-ed02-4be5-90a4-c78443d14f6e', '\x787e29f76d5fddbac51f08bec27ac54bf355a6c533385afeb542abc37c4bd669', false, 1794855436.0178723);
INSERT INTO kronmem.receipt VALUES ('', 'user-ada', '0a087733-fda7-47f2-96fb-6f6338f09d50', '0a087733-fda7-47f2-96fb-6f6338f09d50', '\x2af552b3834a4c5be6e60b6ca5044e08130764a9a85ab04987465b65e7a14b94', false, 1794855436.0300772);
INSERT INTO kronmem.receipt VALUES ('', 'user-ada', 'eaac0abe-f3ce-4311-a5c3-7e3451cce588', 'eaac0abe-f3ce-4311-a5c3-7e3451cce588', '\x3078c8bc6ade40a2d2899b89dde3db1c65b2435a924e3dda7d60c4c29188fb86', false, 1794855436.0419593);
INSERT INTO kronmem.receipt VALUES ('', 'user-ada', 'd039fa16-2314-46f0-8c3f-3e9097328ea3', 'd039fa16-2314-46f0-8c3f-3e9097328ea3', '\x6745c900f9dc3708a00f180e4d0eca7543ccdde456e50ce8cc7cb154cb2709f5', false, 1794855436.0576258);
INSERT INTO kronmem.receipt VALUES ('', 'user-ada', '0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d', '0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d', '\x935d823b57bbef391f23d06da034c291302656cc38dd7f6cb8449d2142648ea3', false, 1794855436.0714135);
INSERT INTO kronmem.receipt VALUES ('', 'user-ada', '17f5757e-307a-45e7-b511-baaaa225c078', '17f5757e-307a-45e7-b511-baaaa225c078', '\x59e248c65c9dc5943cee5168826afc1dd22e573d726b54fb43d05a537464fdf5', false, 1794855436.0838652);
INSERT INTO kronmem.receipt VALUES ('', 'user-ada', 'bee97a93-3a95-418f-8a3e-d150c8287570', 'bee97a93-3a95-418f-8a3e-d150c8287570', '\x91528838b7b91237e90a74640f2cb37205d3d199742edcb53675df62e9e94faa', false, 1794855436.0897205);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '9127ff9e-c3a5-45bc-b1f7-5c88489795dd', '9127ff9e-c3a5-45bc-b1f7-5c88489795dd', '\x2aa6ce63bf50807f5dd37b9b9da2f5126a83977e3b23771e33e9f2c486e7cf66', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '4bb8bdd9-f4af-4055-8730-07dc091b0e61', '4bb8bdd9-f4af-4055-8730-07dc091b0e61', '\xa1881cc4e94e234c73730c28a4ea4442c46393d000445b42fe996e4217308988', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '2aa7be94-f4fb-4845-bbb0-b5330410d2c6', '2aa7be94-f4fb-4845-bbb0-b5330410d2c6', '\x18adccb3b4eebef7837af8aee4732679a64dddfb18c0e7063a43db3bf31804e1', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '3d748ff4-f635-4b35-967e-805c67bf3ff1', '3d748ff4-f635-4b35-967e-805c67bf3ff1', '\xc6bcb655801adc7cbdb2da8af62cbec8b023ee895952fd3b6a047d64e7492ba8', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '43fba58e-7002-42d6-86d3-e763045c4fc9', '43fba58e-7002-42d6-86d3-e763045c4fc9', '\x616eed37d0deb59450e50c25c2ba568305c7cec30161e8650f78a22c1a2f2d03', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', 'bd1050a5-10da-4209-9140-59d4c5a28a5a', 'bd1050a5-10da-4209-9140-59d4c5a28a5a', '\xe99f546f3750fd8deecd342895f6e12673990fda215540b489c6ce999f33567e', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '0ace84eb-ead2-4985-bafb-2824203f522e', '0ace84eb-ead2-4985-bafb-2824203f522e', '\x0fb706da29a6d037c526ba87aaac55248d48e428c203e55981e461e15a7f6d7d', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '697a9d41-69da-4a75-9e27-ade35958de95', '697a9d41-69da-4a75-9e27-ade35958de95', '\xcf298838d5a1fadd9bba55cdc893d1587e0e022e225525f0d65397693af59991', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', 'fd9d1c55-6c02-4fad-9d4b-84876917a9c3', 'fd9d1c55-6c02-4fad-9d4b-84876917a9c3', '\x2e7efeb66ee7d316c9fc38e387e78682208134bcfaa8308770cb63af1ddbb759', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '80d4333b-efdc-4909-af28-88d92c04d3c3', '80d4333b-efdc-4909-af28-88d92c04d3c3', '\x51288a99bd2afe1ca59468fece757ff2cd5ca3ead71deaa6b580d460eda8b879', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', 'c94b9958-4638-48d9-ad78-78bbcb8b63af', 'c94b9958-4638-48d9-ad78-78bbcb8b63af', '\xa5b5146947e7f8b3e25e12f9ef02570dbce03dc342e574be709f373173f4b019', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', 'b503a665-1c78-4244-8154-4726891947cd', 'b503a665-1c78-4244-8154-4726891947cd', '\xa183a384a92aeef383b164f44510eb29bf50046332a4c56265aa7f62534fdb06', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '741f6b6b-fa12-4416-8088-47ef21886f4f', '741f6b6b-fa12-4416-8088-47ef21886f4f', '\x23d13c563107ab68570158ee239861f15975f47242a27279bd77a52133885bca', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '9b8e79f4-d130-4ad1-b965-17d885dea0d3', '9b8e79f4-d130-4ad1-b965-17d885dea0d3', '\x8b8639653d1c8d1ae266a6ad5066c8f54af7ad094cfa52d4c0dc8617ac8eab72', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '8c8cdba7-36a9-4974-b617-4735dd64ead8', '8c8cdba7-36a9-4974-b617-4735dd64ead8', '\x1f11874fed2f31d5119844c7a7631498d22c91a5e3c0030cc693507c66c1c9d1', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '9d95cdce-b441-410b-96bb-0f724e12df42', '9d95cdce-b441-410b-96bb-0f724e12df42', '\xcbb2c32b4ff0cefd33aa694515a3bfc3db318dd6c0c48e58a00dd595dd02eb16', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', 'd945dc50-8d37-4bc7-8150-01b4613cd356', 'd945dc50-8d37-4bc7-8150-01b4613cd356', '\x750199d3adb4e16c9b65e89a7e69de151a285badb889f10770eac101903fc2a2', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '3abe74ec-6767-4591-a927-5a9a3cd83095', '3abe74ec-6767-4591-a927-5a9a3cd83095', '\x868cf3f468bfe6a5c3377a31589e007160f744266ca58f689a94d9e34249a21a', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '5c773e2b-f891-464d-81ad-85df3b40d6e9', '5c773e2b-f891-464d-81ad-85df3b40d6e9', '\xc20b42749c9bdecd93597398373c2b4290f81ee3d336dc84324eda1a73e7e429', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '6c9cbb91-a86e-4fc8-ad05-aace89a89e7f', '6c9cbb91-a86e-4fc8-ad05-aace89a89e7f', '\xdd1c706313550ed4f164b0015cf4733792b19e075b9550199264a9abfa15aff1', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '7b55d736-a745-4396-b043-376a9f0c1050', '7b55d736-a745-4396-b043-376a9f0c1050', '\xbca16e0eaab401f8f3e30737e0814dc4c33886a50ce7c07b6bb29207fdd841a1', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', 'a50e6572-9f6a-40fa-b797-8095b25df410', 'a50e6572-9f6a-40fa-b797-8095b25df410', '\xbca61c53f21685061992333eea94b4c8461824668dba5a9be327f758126f0a26', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '06c2d39b-7459-41d3-9887-8907aa5dec87', '06c2d39b-7459-41d3-9887-8907aa5dec87', '\xb600ae80b95b7a138252be502f613282dd663a15f036f6fd40659cebc3c36f14', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '63ac0504-a9a4-42d4-b75c-6769fd5dc94b', '63ac0504-a9a4-42d4-b75c-6769fd5dc94b', '\x77840b15c6010dd0349d89544bb3fb97626f74bcd3e44eeebf2b9f95ce2418cf', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', 'db0a9e03-043b-4520-b059-3cbbdd580ff0', 'db0a9e03-043b-4520-b059-3cbbdd580ff0', '\x6c25837fe654eb1b8c2a699ed108fda4fe5d8911f1e77712a62368ae7397523c', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '1429da43-97d3-4af1-9428-ea88448ad650', '1429da43-97d3-4af1-9428-ea88448ad650', '\x7379619ed78e1bd46c557f239b2535ce589cba2992ac51a181215cea51025048', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', 'c4319d06-5a1f-4477-bd80-327b997ff9fe', 'c4319d06-5a1f-4477-bd80-327b997ff9fe', '\xc6944623aebc02306bbb8ece85ad74b4bbfdb7ed41652e1a3a10e022eed4489c', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '9682b4f8-02d2-4d57-8f7c-644d9346adde', '9682b4f8-02d2-4d57-8f7c-644d9346adde', '\xfedfe99e861f52b8a3f432e8f6d4fff59ec4af950834cb17c5495ef262e609cc', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '974caf64-19cd-4b6e-ad06-8a2d3c436b23', '974caf64-19cd-4b6e-ad06-8a2d3c436b23', '\x795962320602599002016a60795071e6f6a3f3f30a4449bfd46e214c7914bd03', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', 'ee78d42f-8cd6-4e3e-9347-10dc5e4fd593', 'ee78d42f-8cd6-4e3e-9347-10dc5e4fd593', '\xf61a7d13c1d35ca741bb87b3a80c06db5534e57c1c1ba12911f8dd20baefd6d0', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '76968771-6e10-4d42-9b5c-01aca021553e', '76968771-6e10-4d42-9b5c-01aca021553e', '\x06efb75605ff18cc3e2798dd8cadfc3ca95523a1dc52f321897b83872914f882', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '20d3c4b1-77a4-4501-904d-b753fa35a223', '20d3c4b1-77a4-4501-904d-b753fa35a223', '\xc338fdc503c24fe0db48bc9f213798425d38cc5e3db7822b128692125f1ecf3c', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '66d86652-16b6-48c1-b62b-69b35d09246e', '66d86652-16b6-48c1-b62b-69b35d09246e', '\x4b676d6148045548e1ea764146250f039b32718fc6db206be67e584ed10dadad', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '80ae5f1f-1a25-4ed2-95f1-d8f29952da80', '80ae5f1f-1a25-4ed2-95f1-d8f29952da80', '\x6b8ec07b0d55db7011ab59bc52740ff3138ef2f89dd985b8e763b367e05f8717', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', 'a4988456-772e-4ab9-8220-4effb9fe0d3d', 'a4988456-772e-4ab9-8220-4effb9fe0d3d', '\xe7e2540c2bdf7221f7e7998434c26a9021ff8e6921c6f72f69077d747f189000', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', 'f5cfb168-ceea-4725-8d8c-788ef3b640db', 'f5cfb168-ceea-4725-8d8c-788ef3b640db', '\xd495b43f90431dab4d105205757b42d2865850eeccff08a6714bc27859fa92d9', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', 'de38fa6a-4df3-4d3c-851e-703a80977bd9', 'de38fa6a-4df3-4d3c-851e-703a80977bd9', '\x1555204987e12c7491b3c01f1e75e1a553ee40a490f9235eba6ede213658ebb3', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', 'a597913a-6405-4247-ac24-c7c99bc6f171', 'a597913a-6405-4247-ac24-c7c99bc6f171', '\x9ad5ad098a93dccc6541209917df1bf50f0b88f4d75095b2576a2a2a1fc3b90d', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '257e7d11-014f-4d2f-b816-37710b9ea556', '257e7d11-014f-4d2f-b816-37710b9ea556', '\x2b668b63764a72dbe18de2de19aabdb1bac35ff4e75fb956aa2b9721558cca82', false, 1794855436.1734757);
INSERT INTO kronmem.receipt VALUES ('', 'user-bob', '95847bbd-2e83-4832-914a-3d864c542add', '95847bbd-2e83-4832-914a-3d864c542add', '\x62b27be2b7dc3bacee975881a06545905dc2567656593182614f7dec6ff63bbd', false, 1794855436.1734757);
INSERT INTO kronmem.space OVERRIDING SYSTEM VALUE VALUES (1, '', 'user-ada', NULL, '{}', 1794855435.9781291, 8, 120, 17);
INSERT INTO kronmem.space OVERRIDING SYSTEM VALUE VALUES (2, '', 'user-bob', NULL, '{}', 1794855436.1734757, 40, 240, 42);
INSERT INTO kronmem.space OVERRIDING SYSTEM VALUE VALUES (3, '', 'team-7', NULL, '{}', 1794855441.356382, 0, 0, 0);
INSERT INTO kronmem.state VALUES (1, 'theme', '', '{"dark": true, "sizes": [1, 2.5, null]}', 1794855436.2213905, 1794855436.2213905);
INSERT INTO kronmem.state VALUES (1, 'harbour', '', '{"kind": "chat", "sides": {"assistant": [{"content": "Is the quay open?", "role": "user", "name": "ann"}, {"content": "The quay is closed.", "role": "assistant", "name": "assistant"}], "ann": [{"content": "Is the quay open?", "role": "assistant", "name": "ann"}, {"content": "The quay is closed.", "role": "user", "name": "assistant"}]}}', 1794855440.1400905, 1794855440.1400905);
INSERT INTO kronmem.state VALUES (1, 'sailing', '', '{"kind": "group chat", "messages": [{"content": "Shall we sail?", "role": "user", "name": "ada"}, {"content": "So do I.", "role": "user", "name": "bob"}, {"content": "I agree.", "role": "user", "name": "ada"}]}', 1794855440.1475255, 1794855440.1475255);
INSERT INTO kronmem.state VALUES (3, 'chat', '', '{"type": "TeamState", "version": "1.0.0", "agent_states": {"clerk": {"type": "ChatAgentContainerState", "version": "1.0.0", "agent_state": {"type": "AssistantAgentState", "version": "1.0.0", "llm_context": {"messages": [{"content": "We send invoices as PDF.", "source": "user", "type": "UserMessage"}, {"content": "Noted.", "thought": null, "source": "clerk", "type": "AssistantMessage"}]}}, "message_buffer": []}, "RoundRobinGroupChatManager": {"type": "RoundRobinManagerState", "version": "1.0.0", "message_thread": [{"id": "ce528239-ab44-44ee-97af-3e9ed2fe028c", "source": "user", "models_usage": null, "metadata": {}, "created_at": "2026-11-16T18:57:21.335453Z", "content": "We send invoices as PDF.", "type": "TextMessage"}, {"id": "b108e394-53a8-46d3-8213-cdba26a3457b", "source": "clerk", "models_usage": {"prompt_tokens": 25, "completion_tokens": 1}, "metadata": {}, "created_at": "2026-11-16T18:57:21.343224Z", "content": "Noted.", "type": "TextMessage"}], "current_turn": 0, "next_speaker_index": 0}}}', 1794855441.356382, 1794855441.356382);
INSERT INTO kronmem.version VALUES (1);
SELECT pg_catalog.setval('kronmem.space_id_seq', 3, true);
ALTER TABLE ONLY kronmem.memory
    ADD CONSTRAINT memory_pkey PRIMARY KEY (space, number);
ALTER TABLE ONLY kronmem.memory_0
    ADD CONSTRAINT memory_0_pkey PRIMARY KEY (space, number);
ALTER TABLE ONLY kronmem.memory_1
    ADD CONSTRAINT memory_1_pkey PRIMARY KEY (space, number);
ALTER TABLE ONLY kronmem.receipt
    ADD CONSTRAINT receipt_pkey PRIMARY KEY (owner, name, client);
ALTER TABLE ONLY kronmem.space
    ADD CONSTRAINT space_owner_name_key UNIQUE (owner, name);
ALTER TABLE ONLY kronmem.space
    ADD CONSTRAINT space_pkey PRIMARY KEY (id);
ALTER TABLE ONLY kronmem.state
    ADD CONSTRAINT state_pkey PRIMARY KEY (space, key);
CREATE INDEX memory_expiry ON ONLY kronmem.memory USING btree (expires, space) WHERE (expires IS NOT NULL);
CREATE INDEX memory_0_expires_space_idx ON kronmem.memory_0 USING btree (expires, space) WHERE (expires IS NOT NULL);
CREATE UNIQUE INDEX memory_id ON ONLY kronmem.memory USING btree (space, id);
CREATE UNIQUE INDEX memory_0_space_id_idx ON kronmem.memory_0 USING btree (space, id);
CREATE INDEX memory_pinned ON ONLY kronmem.memory USING btree (space, number) WHERE pinned;
CREATE INDEX memory_0_space_number_idx ON kronmem.memory_0 USING btree (space, number) WHERE pinned;
CREATE UNIQUE INDEX memory_text ON ONLY kronmem.memory USING btree (space, session, digest);
CREATE UNIQUE INDEX memory_0_space_session_digest_idx ON kronmem.memory_0 USING btree (space, session, digest);
CREATE INDEX memory_1_expires_space_idx ON kronmem.memory_1 USING btree (expires, space) WHERE (expires IS NOT NULL);
CREATE UNIQUE INDEX memory_1_space_id_idx ON kronmem.memory_1 USING btree (space, id);
CREATE INDEX memory_1_space_number_idx ON kronmem.memory_1 USING btree (space, number) WHERE pinned;
CREATE UNIQUE INDEX memory_1_space_session_digest_idx ON kronmem.memory_1 USING btree (space, session, digest);
CREATE UNIQUE INDEX posting_term ON ONLY kronmem.posting USING btree (space, term, number) INCLUDE (times, length);
CREATE UNIQUE INDEX posting_0_space_term_number_times_length_idx ON kronmem.posting_0 USING btree (space, term, number) INCLUDE (times, length);
CREATE UNIQUE INDEX posting_1_space_term_number_times_length_idx ON kronmem.posting_1 USING btree (space, term, number) INCLUDE (times, length);
CREATE INDEX receipt_at ON kronmem.receipt USING btree (at);
ALTER INDEX kronmem.memory_expiry ATTACH PARTITION kronmem.memory_0_expires_space_idx;
ALTER INDEX kronmem.memory_pkey ATTACH PARTITION kronmem.memory_0_pkey;
ALTER INDEX kronmem.memory_id ATTACH PARTITION kronmem.memory_0_space_id_idx;
ALTER INDEX kronmem.memory_pinned ATTACH PARTITION kronmem.memory_0_space_number_idx;
ALTER INDEX kronmem.memory_text ATTACH PARTITION kronmem.memory_0_space_session_digest_idx;
ALTER INDEX kronmem.memory_expiry ATTACH PARTITION kronmem.memory_1_expires_space_idx;
ALTER INDEX kronmem.memory_pkey ATTACH PARTITION kronmem.memory_1_pkey;
ALTER INDEX kronmem.memory_id ATTACH PARTITION kronmem.memory_1_space_id_idx;
ALTER INDEX kronmem.memory_pinned ATTACH PARTITION kronmem.memory_1_space_number_idx;
ALTER INDEX kronmem.memory_text ATTACH PARTITION kronmem.memory_1_space_session_digest_idx;
ALTER INDEX kronmem.posting_term ATTACH PARTITION kronmem.posting_0_space_term_number_times_length_idx;
ALTER INDEX kronmem.posting_term ATTACH PARTITION kronmem.posting_1_space_term_number_times_length_idx;
