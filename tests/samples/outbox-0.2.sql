-- An outbox that kronmem 0.2 wrote for http://127.0.0.1:9 with the key kv-old.
PRAGMA application_id = 1802661743;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE delivered(
            id TEXT PRIMARY KEY, service TEXT NOT NULL, agent TEXT NOT NULL, memory TEXT NOT NULL, at REAL NOT NULL
        ) WITHOUT ROWID;
CREATE TABLE head(
                service TEXT NOT NULL, mark TEXT NOT NULL, agent TEXT NOT NULL, seq INTEGER NOT NULL,
                due REAL NOT NULL, noted REAL NOT NULL, lease REAL NOT NULL,
                PRIMARY KEY(service, mark, agent)) WITHOUT ROWID;
INSERT INTO "head" VALUES('http://127.0.0.1:9','f85050eb51f4c85b06b8a04fb8e6ba61','alice',1327457897337005,0.0,1.79513654088580656056e+09,0.0);
INSERT INTO "head" VALUES('http://127.0.0.1:9','f85050eb51f4c85b06b8a04fb8e6ba61','bob',1327457897337007,0.0,1.79513654091438031199e+09,0.0);
CREATE TABLE origin(seq INTEGER PRIMARY KEY, traceparent TEXT NOT NULL);
CREATE TABLE pause(
                service TEXT NOT NULL, mark TEXT NOT NULL, until REAL NOT NULL, noted REAL NOT NULL,
                PRIMARY KEY(service, mark)) WITHOUT ROWID;
CREATE TABLE salt(value BLOB NOT NULL);
INSERT INTO "salt" VALUES(X'0BF8F87A2312A650264EBBC22691E999');
CREATE TABLE sent(seq INTEGER PRIMARY KEY);
CREATE TABLE total(rows INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO "total" VALUES(3,381);
CREATE TABLE waiting(
            seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, service TEXT NOT NULL, mark TEXT NOT NULL,
            agent TEXT NOT NULL, session TEXT, body TEXT NOT NULL, bytes INTEGER NOT NULL, created REAL NOT NULL,
            dead INTEGER NOT NULL DEFAULT 0, refused INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0,
            cancelled INTEGER NOT NULL DEFAULT 0, error TEXT, noted REAL NOT NULL DEFAULT 0,
            backoff REAL NOT NULL DEFAULT 0, asked REAL NOT NULL DEFAULT 0, lease REAL NOT NULL DEFAULT 0,
            holder TEXT NOT NULL DEFAULT '');
INSERT INTO "waiting" VALUES(1327457897337005,'37f47a03-e8e6-49b8-816b-efbfb874bfb5','http://127.0.0.1:9','f85050eb51f4c85b06b8a04fb8e6ba61','alice','s','{"content": "first words", "memory_type": "decision", "session_id": "s", "ttl": {}, "pinned": false, "tags": ["t"], "metadata": {}}',131,1.79513654082851076125e+09,0,0,1,0,'cannot connect to http://127.0.0.1:9 (connection refused). Is the service running? `kronmem doctor` checks.',1.79513654088580656056e+09,0.0,0.0,0.0,'vm pid:[4026531836]|21721|425362');
INSERT INTO "waiting" VALUES(1327457897337006,'8706b772-1da9-4dd0-8515-2e2094fb7beb','http://127.0.0.1:9','f85050eb51f4c85b06b8a04fb8e6ba61','alice',NULL,'{"content": "second words", "memory_type": "fact", "session_id": null, "ttl": {}, "pinned": true, "tags": [], "metadata": {}}',125,1.79513654088418054578e+09,0,0,0,0,NULL,0.0,0.0,0.0,0.0,'');
INSERT INTO "waiting" VALUES(1327457897337007,'b5c14a96-f413-41af-8f92-caee6f4cbdc4','http://127.0.0.1:9','f85050eb51f4c85b06b8a04fb8e6ba61','bob',NULL,'{"content": "third words", "memory_type": "fact", "session_id": null, "ttl": {}, "pinned": false, "tags": [], "metadata": {}}',125,1.79513654090402126305e+09,0,0,1,0,'cannot connect to http://127.0.0.1:9 (connection refused). Is the service running? `kronmem doctor` checks.',1.79513654091438031199e+09,0.0,0.0,0.0,'vm pid:[4026531836]|21721|425362');
CREATE INDEX waiting_lane ON waiting(service, mark, dead, agent, seq);
CREATE INDEX delivered_at ON delivered(at);
CREATE TRIGGER waiting_in AFTER INSERT ON waiting BEGIN
            UPDATE total SET rows = rows + 1, bytes = bytes + NEW.bytes; END;
CREATE TRIGGER waiting_out AFTER DELETE ON waiting BEGIN
            UPDATE total SET rows = rows - 1, bytes = bytes - OLD.bytes; END;
CREATE INDEX head_due ON head(service, mark, due, seq);
CREATE INDEX head_noted ON head(service, mark, noted, lease);
CREATE TRIGGER head_in AFTER INSERT ON waiting WHEN NEW.dead = 0 BEGIN
                INSERT OR IGNORE INTO head SELECT service, mark, agent, seq, max(backoff, asked, lease), noted, lease FROM waiting WHERE seq = NEW.seq; END;
CREATE TRIGGER head_out AFTER DELETE ON waiting BEGIN DELETE FROM head WHERE service = OLD.service AND mark = OLD.mark AND agent = OLD.agent AND seq = OLD.seq;
        INSERT OR IGNORE INTO head SELECT service, mark, agent, seq, max(backoff, asked, lease), noted, lease FROM waiting WHERE service = OLD.service AND mark = OLD.mark AND agent = OLD.agent AND dead = 0 ORDER BY seq LIMIT 1; END;
CREATE TRIGGER head_moved AFTER UPDATE OF service, mark, agent, dead ON waiting BEGIN
                DELETE FROM head WHERE service = OLD.service AND mark = OLD.mark AND agent = OLD.agent AND seq = OLD.seq;
        INSERT OR IGNORE INTO head SELECT service, mark, agent, seq, max(backoff, asked, lease), noted, lease FROM waiting WHERE service = OLD.service AND mark = OLD.mark AND agent = OLD.agent AND dead = 0 ORDER BY seq LIMIT 1;
                DELETE FROM head WHERE service = NEW.service AND mark = NEW.mark AND agent = NEW.agent;
                DELETE FROM head WHERE service = NEW.service AND mark = NEW.mark AND agent = NEW.agent AND seq = NEW.seq;
        INSERT OR IGNORE INTO head SELECT service, mark, agent, seq, max(backoff, asked, lease), noted, lease FROM waiting WHERE service = NEW.service AND mark = NEW.mark AND agent = NEW.agent AND dead = 0 ORDER BY seq LIMIT 1; END;
CREATE TRIGGER head_noted AFTER UPDATE OF noted, backoff, asked, lease ON waiting BEGIN
                UPDATE head SET due = max(NEW.backoff, NEW.asked, NEW.lease), noted = NEW.noted, lease = NEW.lease
                WHERE service = NEW.service AND mark = NEW.mark AND agent = NEW.agent AND seq = NEW.seq; END;
CREATE TRIGGER origin_out AFTER DELETE ON waiting BEGIN
                DELETE FROM origin WHERE seq = OLD.seq; END;
CREATE TRIGGER sent_out AFTER DELETE ON waiting BEGIN
                DELETE FROM sent WHERE seq = OLD.seq; END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('waiting',1327457897337007);
COMMIT;
