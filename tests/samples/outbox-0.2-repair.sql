BEGIN TRANSACTION;
CREATE TABLE delivered(
            id TEXT PRIMARY KEY, service TEXT NOT NULL, agent TEXT NOT NULL, memory TEXT NOT NULL, at REAL NOT NULL
        ) WITHOUT ROWID;
CREATE TABLE head(
                service TEXT NOT NULL, mark TEXT NOT NULL, agent TEXT NOT NULL, seq INTEGER NOT NULL,
                due REAL NOT NULL, noted REAL NOT NULL, lease REAL NOT NULL,
                PRIMARY KEY(service, mark, agent)) WITHOUT ROWID;
INSERT INTO "head" VALUES('http://kronvex.test','a4ddd1da16c7ce4da9f54f9cd1d47d94','alice',451458279190824,1.75003423004881024361e+09,1.75003417004881024362e+09,1.75003423004881024361e+09);
CREATE TABLE origin(seq INTEGER PRIMARY KEY, traceparent TEXT NOT NULL);
CREATE TABLE pause(
                service TEXT NOT NULL, mark TEXT NOT NULL, until REAL NOT NULL, noted REAL NOT NULL,
                PRIMARY KEY(service, mark)) WITHOUT ROWID;
CREATE TABLE salt(value BLOB NOT NULL);
INSERT INTO "salt" VALUES(X'4B9EC7D2F165EF8E0593B576AA20DB5C');
CREATE TABLE sent(seq INTEGER PRIMARY KEY);
CREATE TABLE set_aside(
    service TEXT NOT NULL, mark TEXT NOT NULL, agent TEXT NOT NULL, memory TEXT NOT NULL, holder TEXT NOT NULL,
    number INTEGER NOT NULL, at REAL NOT NULL, forgotten INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY(service, mark, agent, memory, holder, number)) WITHOUT ROWID;
INSERT INTO "set_aside" VALUES('http://kronvex.test','a4ddd1da16c7ce4da9f54f9cd1d47d94','alice','22222222-2222-4222-8222-222222222222','laptop|7931|184580',2,1.75003417005392456049e+09,0);
CREATE TABLE total(rows INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO "total" VALUES(1,129);
CREATE TABLE waiting(
            seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, service TEXT NOT NULL, mark TEXT NOT NULL,
            agent TEXT NOT NULL, session TEXT, body TEXT NOT NULL, bytes INTEGER NOT NULL, created REAL NOT NULL,
            dead INTEGER NOT NULL DEFAULT 0, refused INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0,
            cancelled INTEGER NOT NULL DEFAULT 0, error TEXT, noted REAL NOT NULL DEFAULT 0,
            backoff REAL NOT NULL DEFAULT 0, asked REAL NOT NULL DEFAULT 0, lease REAL NOT NULL DEFAULT 0,
            holder TEXT NOT NULL DEFAULT '');
INSERT INTO "waiting" VALUES(451458279190824,'5fe54a96-fe10-4b7a-b52d-1428641f2596','http://kronvex.test','a4ddd1da16c7ce4da9f54f9cd1d47d94','alice','ours','{"content": "charlie delta", "memory_type": "fact", "session_id": "ours", "ttl": {}, "pinned": false, "tags": [], "metadata": {}}',129,1.75003417003161525721e+09,0,0,0,0,NULL,1.75003417004881024362e+09,0.0,0.0,1.75003423004881024361e+09,'laptop|7931|184580');
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
INSERT INTO "sqlite_sequence" VALUES('waiting',451458279190824);
COMMIT;
PRAGMA application_id = 1802661743;
PRAGMA user_version = 1;
