package sqltest

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/seed90641741/spillway/spillsql"
)

// A postgres is a PostgreSQL server with a data directory and its own socket.
type postgres struct {
	bin, dir string
	as       *syscall.Credential // PostgreSQL does not run as root
	process  *exec.Cmd
}

// shared is the server of all tests. It is made when the first one needs it.
var (
	shared = sync.OnceValues(newPostgres)
	used   bool
)

func TestMain(m *testing.M) {
	code := m.Run()
	if used {
		if s, err := shared(); err == nil {
			s.stop(syscall.SIGQUIT)
			_ = os.RemoveAll(s.dir)
		}
	}
	os.Exit(code)
}

// start returns the server, or skips the test where PostgreSQL is not installed.
func start(t *testing.T) *postgres {
	t.Helper()
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb"); len(found) == 0 {
		t.Skip("PostgreSQL is not installed: Debian has it in the package postgresql-15")
	}
	used = true
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newPostgres() (*postgres, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("no initdb: %w", err)
	}
	s := &postgres{bin: filepath.Dir(found[len(found)-1])}
	if s.dir, err = os.MkdirTemp("", "spillsql"); err != nil {
		return nil, err
	}
	if err := s.unprivileged(); err != nil {
		return nil, err
	}
	initdb := s.command("initdb", "--no-sync", "--auth=trust", "--username=test", "--no-locale", "--encoding=UTF8", filepath.Join(s.dir, "data"))
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	return s, s.run()
}

// unprivileged has the server run as another user than root.
func (s *postgres) unprivileged() error {
	if os.Getuid() != 0 {
		return nil
	}
	other, err := user.Lookup("nobody")
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(other.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(other.Gid)
	if err != nil {
		return err
	}
	s.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return os.Chown(s.dir, uid, gid)
}

func (s *postgres) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.bin, name), args...)
	c.Dir = s.dir
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.as, Pdeathsig: syscall.SIGQUIT}
	return c
}

// run starts the server and waits until it answers.
func (s *postgres) run() error {
	s.process = s.command("postgres", "-D", filepath.Join(s.dir, "data"), "-k", s.dir, "-c", "listen_addresses=",
		"-c", "fsync=off", "-c", "max_connections=300", "-c", "shared_buffers=16MB", "-c", "autovacuum=off")
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		c, err := pgx.Connect(ctx, s.dsn())
		if err == nil {
			return c.Close(ctx)
		}
		select {
		case <-ctx.Done():
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("postgres does not answer: %w: %s", err, text)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop ends the server and waits for its end.
func (s *postgres) stop(how os.Signal) {
	_ = s.process.Process.Signal(how)
	_ = s.process.Wait()
}

func (s *postgres) dsn() string { return "host=" + s.dir + " user=test dbname=postgres" }

// plain returns a pool of n connections of database/sql.
func (s *postgres) plain(t *testing.T, n int) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", s.dsn())
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// behind returns a pool behind spillsql.
func (s *postgres) behind(t *testing.T, c spillsql.Config) *sql.DB {
	t.Helper()
	config, err := pgx.ParseConfig(s.dsn())
	if err != nil {
		t.Fatal(err)
	}
	db, err := spillsql.OpenDB(stdlib.GetConnector(*config), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
