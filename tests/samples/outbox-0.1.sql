-- An outbox that kronmem 0.1 wrote for http://127.0.0.1:9 with the key kv-old, after its first attempts had failed.
PRAGMA application_id = 1802661743;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE delivered(
            id TEXT PRIMARY KEY, service TEXT NOT NULL, agent TEXT NOT NULL, memory TEXT NOT NULL, at REAL NOT NULL
        ) WITHOUT ROWID;
CREATE TABLE salt(value BLOB NOT NULL);
INSERT INTO "salt" VALUES(X'1F8EF3C23A72C4E8EE21207E64891844');
CREATE TABLE total(rows INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO "total" VALUES(3,403);
CREATE TABLE waiting(
            seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, service TEXT NOT NULL, mark TEXT NOT NULL,
            agent TEXT NOT NULL, session TEXT, body TEXT NOT NULL, bytes INTEGER NOT NULL, created REAL NOT NULL,
            dead INTEGER NOT NULL DEFAULT 0, refused INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0,
            cancelled INTEGER NOT NULL DEFAULT 0, error TEXT, noted REAL NOT NULL DEFAULT 0,
            backoff REAL NOT NULL DEFAULT 0, asked REAL NOT NULL DEFAULT 0, lease REAL NOT NULL DEFAULT 0,
            holder TEXT NOT NULL DEFAULT '');
INSERT INTO "waiting" VALUES(1,'00000000-0000-4000-8000-000000000001','http://127.0.0.1:9','f398bfe442d225ac331bb72310c69a37','alice','s','{"content": "first words", "memory_type": "decision", "session_id": "s", "ttl": {}, "pinned": false, "tags": ["t"], "metadata": {"n": 1}}',137,1.79485561561709213254e+09,0,0,2,0,'the service cannot be reached (ConnectError)',1.7948556156383447647e+09,1.7948556169906773567e+09,0.0,0.0,'vm|16387|303403');
INSERT INTO "waiting" VALUES(2,'00000000-0000-4000-8000-000000000002','http://127.0.0.1:9','f398bfe442d225ac331bb72310c69a37','alice',NULL,'{"content": "second words", "memory_type": "fact", "session_id": null, "ttl": {}, "pinned": true, "tags": [], "metadata": {}}',125,1.79485561561913323398e+09,0,0,0,0,NULL,1.79485561563631439204e+09,0.0,0.0,0.0,'vm|16387|303403');
INSERT INTO "waiting" VALUES(3,'00000000-0000-4000-8000-000000000003','http://127.0.0.1:9','f398bfe442d225ac331bb72310c69a37','bob',NULL,'{"content": "third words", "memory_type": "fact", "session_id": null, "ttl": {"ttl_days": 3650}, "pinned": false, "tags": [], "metadata": {}}',141,1.79485561562669110303e+09,0,0,0,0,NULL,0.0,0.0,0.0,0.0,'');
CREATE INDEX waiting_lane ON waiting(service, mark, dead, agent, seq);
CREATE INDEX delivered_at ON delivered(at);
CREATE TRIGGER waiting_in AFTER INSERT ON waiting BEGIN
            UPDATE total SET rows = rows + 1, bytes = bytes + NEW.bytes; END;
CREATE TRIGGER waiting_out AFTER DELETE ON waiting BEGIN
            UPDATE total SET rows = rows - 1, bytes = bytes - OLD.bytes; END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('waiting',3);
COMMIT;
