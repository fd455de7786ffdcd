-- A database that kronmem 0.2 wrote: its statements, and the rows.
CREATE SCHEMA kronmem;
CREATE TABLE kronmem.version(number integer NOT NULL);
CREATE TABLE kronmem.settings(name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE kronmem.spaces(
    id bigint PRIMARY KEY, owner text COLLATE "C" NOT NULL, name text COLLATE "C" NOT NULL, gone boolean NOT NULL DEFAULT false,
    description text, metadata text NOT NULL, created float8 NOT NULL, count integer NOT NULL,
    passages integer NOT NULL, words bigint NOT NULL, last integer NOT NULL, generation integer NOT NULL,
    revised integer NOT NULL) WITH (fillfactor = 50);
CREATE INDEX spaces_owner ON kronmem.spaces(owner, name);
CREATE TABLE kronmem.memories(
    space bigint NOT NULL, created float8 NOT NULL, expires float8, said float8 NOT NULL, updated float8,
    id uuid NOT NULL, successor uuid, number integer NOT NULL, accessed integer NOT NULL,
    passages smallint NOT NULL, pinned boolean NOT NULL, digest bytea NOT NULL, session text COLLATE "C" NOT NULL,
    about text COLLATE "C" NOT NULL, role text COLLATE "C", type text COLLATE "C" NOT NULL, tags text NOT NULL, metadata text NOT NULL,
    content text COLLATE "C" NOT NULL, PRIMARY KEY(space, number)) PARTITION BY HASH (space);
CREATE UNIQUE INDEX memories_id ON kronmem.memories(space, id);
CREATE UNIQUE INDEX memories_text ON kronmem.memories(space, session, about, digest) WHERE successor IS NULL;
CREATE UNIQUE INDEX memories_about ON kronmem.memories(space, session, about)
    WHERE successor IS NULL AND about <> '';
CREATE INDEX memories_successor ON kronmem.memories(space, successor) WHERE successor IS NOT NULL;
CREATE INDEX memories_expiry ON kronmem.memories(expires, space) WHERE expires IS NOT NULL;
CREATE INDEX memories_created ON kronmem.memories(space, created);
CREATE INDEX memories_pinned ON kronmem.memories(space, number) WHERE pinned;
CREATE INDEX memories_unfilled ON kronmem.memories(space, number) WHERE passages = 0 AND successor IS NULL;
CREATE TABLE kronmem.postings(
    space bigint NOT NULL, first integer NOT NULL, memories smallint NOT NULL, term text COLLATE "C" NOT NULL,
    packed bytea NOT NULL) PARTITION BY HASH (space);
CREATE UNIQUE INDEX postings_term ON kronmem.postings(space, term, first);
CREATE TABLE kronmem.meanings(
    space bigint NOT NULL, number integer NOT NULL, codes bytea NOT NULL, vectors bytea NOT NULL,
    PRIMARY KEY(space, number));
CREATE TABLE kronmem.embeddings(
    space bigint NOT NULL, number integer NOT NULL, vector bytea NOT NULL, PRIMARY KEY(space, number));
CREATE TABLE kronmem.receipts(
    space bigint NOT NULL, client text COLLATE "C" NOT NULL, memory uuid NOT NULL, body bytea NOT NULL,
    deduplicated boolean NOT NULL, at float8 NOT NULL, PRIMARY KEY(space, client));
CREATE INDEX receipts_at ON kronmem.receipts(at);
CREATE TABLE kronmem.erased(
    space bigint NOT NULL, digest bytea NOT NULL, at float8 NOT NULL, PRIMARY KEY(space, digest));
CREATE INDEX erased_at ON kronmem.erased(at);
CREATE TABLE kronmem.states(
    space bigint NOT NULL, key text COLLATE "C" NOT NULL, value text NOT NULL, created float8 NOT NULL,
    updated float8 NOT NULL, PRIMARY KEY(space, key));
CREATE TABLE kronmem.memories_0 PARTITION OF kronmem.memories FOR VALUES WITH (MODULUS 16, REMAINDER 0) WITH (fillfactor = 85);
CREATE TABLE kronmem.memories_1 PARTITION OF kronmem.memories FOR VALUES WITH (MODULUS 16, REMAINDER 1) WITH (fillfactor = 85);
CREATE TABLE kronmem.memories_2 PARTITION OF kronmem.memories FOR VALUES WITH (MODULUS 16, REMAINDER 2) WITH (fillfactor = 85);
CREATE TABLE kronmem.memories_3 PARTITION OF kronmem.memories FOR VALUES WITH (MODULUS 16, REMAINDER 3) WITH (fillfactor = 85);
CREATE TABLE kronmem.memories_4 PARTITION OF kronmem.memories FOR VALUES WITH (MODULUS 16, REMAINDER 4) WITH (fillfactor = 85);
CREATE TABLE kronmem.memories_5 PARTITION OF kronmem.memories FOR VALUES WITH (MODULUS 16, REMAINDER 5) WITH (fillfactor = 85);
CREATE TABLE kronmem.memories_6 PARTITION OF kronmem.memories FOR VALUES WITH (MODULUS 16, REMAINDER 6) WITH (fillfactor = 85);
CREATE TABLE kronmem.memories_7 PARTITION OF kronmem.memories FOR VALUES WITH (MODULUS 16, REMAINDER 7) WITH (fillfactor = 85);
CREATE TABLE kronmem.memories_8 PARTITION OF kronmem.memories FOR VALUES WITH (MODULUS 16, REMAINDER 8) WITH (fillfactor = 85);
CREATE TABLE kronmem.memories_9 PARTITION OF kronmem.memories FOR VALUES WITH (MODULUS 16, REMAINDER 9) WITH (fillfactor = 85);
CREATE TABLE kronmem.memories_10 PARTITION OF kronmem.memories FOR VALUES WITH (MODULUS 16, REMAINDER 10) WITH (fillfactor = 85);
CREATE TABLE kronmem.memories_11 PARTITION OF kronmem.memories FOR VALUES WITH (MODULUS 16, REMAINDER 11) WITH (fillfactor = 85);
CREATE TABLE kronmem.memories_12 PARTITION OF kronmem.memories FOR VALUES WITH (MODULUS 16, REMAINDER 12) WITH (fillfactor = 85);
CREATE TABLE kronmem.memories_13 PARTITION OF kronmem.memories FOR VALUES WITH (MODULUS 16, REMAINDER 13) WITH (fillfactor = 85);
CREATE TABLE kronmem.memories_14 PARTITION OF kronmem.memories FOR VALUES WITH (MODULUS 16, REMAINDER 14) WITH (fillfactor = 85);
CREATE TABLE kronmem.memories_15 PARTITION OF kronmem.memories FOR VALUES WITH (MODULUS 16, REMAINDER 15) WITH (fillfactor = 85);
CREATE TABLE kronmem.postings_0 PARTITION OF kronmem.postings FOR VALUES WITH (MODULUS 16, REMAINDER 0) WITH (fillfactor = 90);
CREATE TABLE kronmem.postings_1 PARTITION OF kronmem.postings FOR VALUES WITH (MODULUS 16, REMAINDER 1) WITH (fillfactor = 90);
CREATE TABLE kronmem.postings_2 PARTITION OF kronmem.postings FOR VALUES WITH (MODULUS 16, REMAINDER 2) WITH (fillfactor = 90);
CREATE TABLE kronmem.postings_3 PARTITION OF kronmem.postings FOR VALUES WITH (MODULUS 16, REMAINDER 3) WITH (fillfactor = 90);
CREATE TABLE kronmem.postings_4 PARTITION OF kronmem.postings FOR VALUES WITH (MODULUS 16, REMAINDER 4) WITH (fillfactor = 90);
CREATE TABLE kronmem.postings_5 PARTITION OF kronmem.postings FOR VALUES WITH (MODULUS 16, REMAINDER 5) WITH (fillfactor = 90);
CREATE TABLE kronmem.postings_6 PARTITION OF kronmem.postings FOR VALUES WITH (MODULUS 16, REMAINDER 6) WITH (fillfactor = 90);
CREATE TABLE kronmem.postings_7 PARTITION OF kronmem.postings FOR VALUES WITH (MODULUS 16, REMAINDER 7) WITH (fillfactor = 90);
CREATE TABLE kronmem.postings_8 PARTITION OF kronmem.postings FOR VALUES WITH (MODULUS 16, REMAINDER 8) WITH (fillfactor = 90);
CREATE TABLE kronmem.postings_9 PARTITION OF kronmem.postings FOR VALUES WITH (MODULUS 16, REMAINDER 9) WITH (fillfactor = 90);
CREATE TABLE kronmem.postings_10 PARTITION OF kronmem.postings FOR VALUES WITH (MODULUS 16, REMAINDER 10) WITH (fillfactor = 90);
CREATE TABLE kronmem.postings_11 PARTITION OF kronmem.postings FOR VALUES WITH (MODULUS 16, REMAINDER 11) WITH (fillfactor = 90);
CREATE TABLE kronmem.postings_12 PARTITION OF kronmem.postings FOR VALUES WITH (MODULUS 16, REMAINDER 12) WITH (fillfactor = 90);
CREATE TABLE kronmem.postings_13 PARTITION OF kronmem.postings FOR VALUES WITH (MODULUS 16, REMAINDER 13) WITH (fillfactor = 90);
CREATE TABLE kronmem.postings_14 PARTITION OF kronmem.postings FOR VALUES WITH (MODULUS 16, REMAINDER 14) WITH (fillfactor = 90);
CREATE TABLE kronmem.postings_15 PARTITION OF kronmem.postings FOR VALUES WITH (MODULUS 16, REMAINDER 15) WITH (fillfactor = 90);
INSERT INTO kronmem.version VALUES (2);
INSERT INTO kronmem.settings VALUES ('salt', '1ad158d1bade801d0b1d04f72becb954');
INSERT INTO kronmem.spaces VALUES ( -1807384403401888463, '', 'ada', false, NULL, '{}', 1795136760.737805, 3, 5, 56, 8, 0, 0);
INSERT INTO kronmem.spaces VALUES ( -6870359289074615677, '', 'bob', false, NULL, '{}', 1795136761.246458, 1, 1, 5, 3, 0, 0);
INSERT INTO kronmem.memories VALUES ( -1807384403401888463, 1795136760.737805, NULL, 1795136760.737805, NULL, 'c79e5618e98a4926b6462ae78d42178b'::uuid, 'cbe1497a667545e3a4decac070b5414f'::uuid, 3, 0, 0, false, '\x96115bdd236ac1a585a4b50a8cd3900c'::bytea, '', 'home_city', NULL, 'fact', '["place"]', '{}', 'Ada lives in Lisbon');
INSERT INTO kronmem.memories VALUES ( -1807384403401888463, 1795136761.185341, NULL, 1795136761.185341, NULL, 'cbe1497a667545e3a4decac070b5414f'::uuid, NULL, 4, 0, 1, false, '\x3aeaca714b294fc001e5c1bc73211c49'::bytea, '', 'home_city', 'user', 'fact', '["place"]', '{}', 'Ada lives in Porto');
INSERT INTO kronmem.memories VALUES ( -1807384403401888463, 1795136761.209143, NULL, 1795136761.209143, NULL, '0b9f1c1e6d5a4d3f9c552f3f3a0f7b1d'::uuid, NULL, 5, 0, 1, true, '\x65c261fbf2e0d5e38f8e7a7a0dbc61ed'::bytea, '', '', NULL, 'preference', '[]', '{"source": "chat", "n": 3}', 'Ada is allergic to peanuts');
INSERT INTO kronmem.memories VALUES ( -1807384403401888463, 1795136761.233299, 2110496761.233299, 1795136761.233299, NULL, 'cdf388153eac45dfb249bcdb303c6501'::uuid, NULL, 8, 0, 3, false, '\xa2e8bf5d190b64e1eaf7895d3b689594'::bytea, 'monday', '', NULL, 'context', '[]', '{}', 'Paragraph 1 of the handbook is about the harbour: who looks after it, when it is closed and what to bring along on a day in May. Paragraph 2 of the handbook is about the library: who looks after it, when it is closed and what to bring along on a day in June. Paragraph 3 of the handbook is about the observatory: who looks after it, when it is closed and what to bring along on a day in March. Paragraph 4 of the handbook is about the greenhouse: who looks after it, when it is closed and what to bring along on a day in April. Paragraph 5 of the handbook is about the workshop: who looks after it, when it is closed and what to bring along on a day in July.');
INSERT INTO kronmem.memories VALUES ( -6870359289074615677, 1795136761.246458, NULL, 1795136761.246458, NULL, 'b7319817a15f478abc68e69b51c3dcd8'::uuid, NULL, 3, 0, 1, false, '\x791cfb2732056f661f2a2390f4b6d27e'::bytea, 's', '', NULL, 'episodic', '[]', '{}', 'Bob ties knots at buoy 77');
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'gplace', '\x02000000'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'tfact', '\x02000000'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'live', '\x02000083'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'place', '\x02000083'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'porto', '\x02000083'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'tpreference', '\x02800000'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 2, 'ada', '\x0280008302000083'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'allerg', '\x02800083'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'peanut', '\x02800083'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'prefer', '\x02800083'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'smonday', '\x04000000'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'tcontext', '\x04000000'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, '1', '\x04000094'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, '2', '\x04000094'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, '3', '\x04002094'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, '4', '\x04002094'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, '5', '\x0400408a'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'along', '\x04000114040021140400408a'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'april', '\x04002094'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'bring', '\x04000114040021140400408a'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'close', '\x04000114040021140400408a'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'context', '\x04000094'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'day', '\x04000114040021140400408a'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'greenhous', '\x04002094'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'handbook', '\x04000114040021140400408a'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'harbour', '\x04000094'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'juli', '\x0400408a'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'june', '\x04000094'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'librari', '\x04000094'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'look', '\x04000114040021140400408a'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'march', '\x04002094'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'may', '\x04000094'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'observatori', '\x04002094'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'paragraph', '\x04000114040021140400408a'::bytea);
INSERT INTO kronmem.postings VALUES ( -1807384403401888463, 0, 1, 'workshop', '\x0400408a'::bytea);
INSERT INTO kronmem.postings VALUES ( -6870359289074615677, 0, 1, 'ss', '\x01800000'::bytea);
INSERT INTO kronmem.postings VALUES ( -6870359289074615677, 0, 1, 'tepisodic', '\x01800000'::bytea);
INSERT INTO kronmem.postings VALUES ( -6870359289074615677, 0, 1, '77', '\x01800085'::bytea);
INSERT INTO kronmem.postings VALUES ( -6870359289074615677, 0, 1, 'bob', '\x01800085'::bytea);
INSERT INTO kronmem.postings VALUES ( -6870359289074615677, 0, 1, 'buoy', '\x01800085'::bytea);
INSERT INTO kronmem.postings VALUES ( -6870359289074615677, 0, 1, 'episod', '\x01800085'::bytea);
INSERT INTO kronmem.postings VALUES ( -6870359289074615677, 0, 1, 'knot', '\x01800085'::bytea);
INSERT INTO kronmem.postings VALUES ( -6870359289074615677, 0, 1, 'tie', '\x01800085'::bytea);
INSERT INTO kronmem.meanings VALUES ( -1807384403401888463, 4, '\x009aba550e814fa22d08b84f15e1f3c2d911401d816bb4132de2103294d080abbc'::bytea, '\x1bea07431038cafe0be10be538ee093a28dfeef9b0f0f7e71f14f702e7f7c6e50b00ea1ff712c6ea00f30709eae51ddfeed8f336fef9eaf32d022afee1f70beae1f002f00709f30bf9fee104ea0002072ffc1009e531e7f7f70716e509f0021009eeeaeefcf3ee2af0f5f7070404f002ee02f7f3eef0f00000fcf707f0fefc091243fe3a5efee30b0416ecececfe09b912141012fee510094a2409d8fedcf904e1eae71dca0dda10ca10fcfc022f1d261ff5100947e5f5ecf9e3d8f714e7ee00ece302ee1f09f01626f007f000e71bfefe09d1f70904070202feeedffe00f907dcfeecfc090414f3fe2de716f90dfe0b09f5091910ec04e512f3f91f07fc0400'::bytea);
INSERT INTO kronmem.meanings VALUES ( -1807384403401888463, 5, '\x0094ba9d0e60993e3958f85331b85164f01d68046d61bf4651f09042a590821b5d'::bytea, '\xdb28f1492803ce16ebf5df2712cd19421ee7e0dccec713e236d9e612cebfafee20e70bf4d815e4060008f5fceae606f417f8de16f2d7f4f20c06150eccfaefd5ed07f908e6e2f20c0012faeef40c03e91ef41901031a0b27f50804f400f80003f8080ff40403ee0aebfafdfdff04e7f9f40607fc0aebefe4eaf5fd030101fd01301e692d00f6bbf1cd1a13efea0feec6f920d713ebfde20846fd0c0e01e7f5efe2d72012d4e9eb01b316f92bf6fc280f200f161101d9ebf2f60bdc010beedbfcf9f4080817fdf20ff2fa2c15080e12fd06f8fa0c03f2ee01ee1604f4eaf9fffaf2fdeef204130ef808f5f8130a0ff90808f6010a16ee08ee11f5ff0af507fcfc'::bytea);
INSERT INTO kronmem.meanings VALUES ( -1807384403401888463, 8, '\x001957aa30d07fb2582291d0d14f66c6ce8ae219bbb14d9ff1096a64458a488089001b77abb4d8efb05022d1d8954d6eecce97e2013bb54abf73196a6545ee48908900811bae38d9ebb2500290d8f14d4e66cecbc2193bb54cfe7919ee6447ab149089'::bytea, '\x1fa5bdbe3ae0d22d1fd3b2fbe4e6e8dfda0efbec02fae4fc2eefefe423ef09e8f723fde7dd15f70af21326ddf006ebf2e62406ea1af30ef7ebe7f40034e9fb0d01091915feedf81511fffe18061a0304da2cf8f20402fc0112ec0415ecfffd0d05f4111307e81c01f9f1eb0303f4ed0a030902fdd5e113eb14fef3fd06f409fc410bf0f35d411ffa1715efdaf81d30e5ea1814c6ff1e29e4d120dcda020b0a322e0ce103e5fae7231933fa07fceccde808f4f32ffdfbd413f9e503f4e4e91df1f603ef0f05e8f7f105f11c19dcfb06e9f50506050907110c0d29ec11fefbfef2e9da0a19fbfff6f408f411f913ff23f8f801fa03000a0d08faf6e10201f4f70e0ca4c0a13edbbc4d4bd0db12bcebeee7c60debe807eff0fa0d010be51d0712f2ec14ebe9e50e0017fa1935e3e813e702fe131af10efd13fcefdfe60e25fceb17f8071a1efbfb07130efb0b1a0b190102d220eef508fd04fc12fa040eeb0cff14fcf2180e08e11307fdf4fdf9f6ebf80c080502f9e0e90df00df9f902fa030c085503f5ea6a2f17eb081006e61f2af8e9e11e22d804241de0e41ad5eb0710f52622f7fd04f20cf019102df81508ffe1e50602e226f8fdd607eee801f8e1e407ebe610fe02f8e9fbf218e50815dff5fafd02091cf908090f1a0b17f41104ecf7fd04de0c0df402f3f309fb01ff16f91f03fd0b0201f406030bf8f2df0302fa01061d92c4b544dee35f1ddcbe12dbf5e9f9e9f9fd050015fbeb27f909ce1ae61801e905effbe3110f0df6121bdfe60eedf8081217f2270414ebf0e6f60b22dffa0df90e191701f6f907090b021107080200e82dfbf10503f7ff0ef60414f303fa11fefa101405eb1205fb00f7080de3ee0e0704f3fcd3f912ed0602fbf70ffc10054f06f1d7672a18d8fe2f08dcfd200ddbe515feeb141717dfe913cbe1020ee732211b0810eefece161630ee1114fed3d408f3f92ef6f2c5fff6f6fff5ebe00bebec04e812f3f6fb0013e9062fe9f104ff040114fc05ff18170b1dfa0f04f1f80df9ed181a09fcf9ff0afa09fb1c0524f0faf1000709fb1b0604fcdf00f9eefc19'::bytea);
INSERT INTO kronmem.meanings VALUES ( -6870359289074615677, 3, '\x003d3b239f2aa24b6fe525bab1b4cb4e93188d10a42fb45422a45aac31d8e07077'::bytea, '\xe30d5905da0f153adf2e1b0ff4c7f0dc17610ff4ffeffcfb0522fd201cf7f8e5fcd60515e8d0f12203ff0cc81f10de00d80ce00c11f707cc3cd008f9cf04cbf9e9de07fd00f119ecec17f91beb17ebf915f3031df511fbdff9f31ded0b0c1b1319ff05ffed07fddff4f50004f7f8ffeb01e4edf10c03f905fbffeb0401f8fff831e9a704bee31803e118cece25013500280fd4f52e00050d07f3341de117f8ec21e80524fce8fd1d2cf5012101f104f8fffd1ffffb01ed1907080c00f710e709fb2510fc24141008f71500f10bfb180d07fd04f8f7f414ebe0f038e41cfb0de009fff40409191803f1e710d7ebe3091fefe913131f000505fdef18081109eb18'::bytea);
INSERT INTO kronmem.receipts VALUES ( -1807384403401888463, 'c79e5618-e98a-4926-b646-2ae78d42178b', 'c79e5618e98a4926b6462ae78d42178b'::uuid, '\xbf6cfcec4bd5c18315b9139924ef6dd0f3f677a214db77c13ac95c6fa65b6407'::bytea, false, 1795136760.737805);
INSERT INTO kronmem.receipts VALUES ( -1807384403401888463, 'cbe1497a-6675-45e3-a4de-cac070b5414f', 'cbe1497a667545e3a4decac070b5414f'::uuid, '\x14fe21d45fa09804339cfb8de67d36333bca105da291a3ca9739732034ea5fd1'::bytea, false, 1795136761.185341);
INSERT INTO kronmem.receipts VALUES ( -1807384403401888463, '0b9f1c1e-6d5a-4d3f-9c55-2f3f3a0f7b1d', '0b9f1c1e6d5a4d3f9c552f3f3a0f7b1d'::uuid, '\x7d33dc5139ea3afe1c0b4d25527bd6744004f543e3a77c7016cc5cfe76ba3d82'::bytea, false, 1795136761.209143);
INSERT INTO kronmem.receipts VALUES ( -1807384403401888463, 'cdf38815-3eac-45df-b249-bcdb303c6501', 'cdf388153eac45dfb249bcdb303c6501'::uuid, '\xdd691d4d8e87e6f08850ab3e1d5e8228306de2754721824c78226c76ea77f3a8'::bytea, false, 1795136761.233299);
INSERT INTO kronmem.receipts VALUES ( -6870359289074615677, 'b7319817-a15f-478a-bc68-e69b51c3dcd8', 'b7319817a15f478abc68e69b51c3dcd8'::uuid, '\x105b22940a10dc7056972c3cb45779c256359664d9a6576c7f45165bb0c502fd'::bytea, false, 1795136761.246458);
INSERT INTO kronmem.states VALUES ( -1807384403401888463, 'theme', '{"dark":true,"sizes":[1,2.5,null]}', 1795136761.269117, 1795136761.269117);
