//go:build unix

package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed90641741/spillway/internal/snippets"
)

// A newcomer follows a document from an empty directory, with two terminals.
type newcomer struct {
	*user

	at      string // working directory of both terminals
	pasted  string // the line of make try
	address string // in place of the one in the document
	server  *exec.Cmd
}

// newNewcomer returns a newcomer who has nothing but the go command, the modules of other repositories, and a checkout of
// this one: it is what is in the files now.
func newNewcomer(t *testing.T) *newcomer {
	t.Helper()
	if !*checking {
		t.Skip("make release-check compiles all modules")
	}
	u := newUser(t, &release{}, "/nowhere")
	n := &newcomer{user: u, at: filepath.Join(u.dir, "empty"), address: freeAddress(t)}
	if err := os.Mkdir(n.at, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("make", "try")
	cmd.Dir, cmd.Stderr = "../..", os.Stderr
	line, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	n.pasted = string(line)
	return n
}

// TestStart follows docs/start.md to the letter. Drills are not run, because they take a minute.
func TestStart(t *testing.T) {
	n := newNewcomer(t)
	var blocks []snippets.Snippet
	for _, s := range documents(t) {
		if s.File == snippets.Start {
			blocks = append(blocks, s)
		}
	}
	for i, block := range blocks {
		after := ""
		if i+1 < len(blocks) {
			after = blocks[i+1].Lead
		}
		n.follows(block, after)
	}
	n.overloads()
	n.drains()
}

// TestReadme follows what the README says on how to use the library, until its server runs. It needs no other modules, and
// no database of checksums.
func TestReadme(t *testing.T) {
	n := newNewcomer(t)
	n.env = append(n.env, "GOPROXY=off", "GOSUMDB=sum.golang.org")
	using := false
	for _, s := range documents(t) {
		if s.File != snippets.Readme || n.server != nil {
			continue
		}
		if using = using || strings.Contains(s.Lead, "## Use it\n"); using {
			n.follows(s, "")
		}
	}
	if n.server == nil {
		t.Fatal("the README starts no server")
	}
	n.overloads()
}

// freeAddress returns an address on which nothing listens. Its port is not one that the system gives to clients.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(10000))
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no free port")
	return ""
}

var (
	savedAs  = regexp.MustCompile("Save (?:this|it) as `([^`]+)`")
	expected = regexp.MustCompile("It (?:prints|answers) `([^`]+)`")
	flags    = regexp.MustCompile(`--[a-z-]+`)
)

// follows does what a block says. The text after it has what the block prints.
func (n *newcomer) follows(block snippets.Snippet, after string) {
	n.t.Helper()
	local := strings.NewReplacer("127.0.0.1:8080", n.address)
	text, want := local.Replace(block.Text), ""
	if m := expected.FindStringSubmatch(local.Replace(after)); m != nil {
		want = m[1]
	}
	switch {
	case block.Kind == "go":
		file := savedAs.FindStringSubmatch(block.Lead)
		if file == nil {
			n.t.Fatalf("%s: the document does not say where to save this", block)
		}
		rel, err := filepath.Rel(n.dir, n.at)
		if err != nil {
			n.t.Fatal(err)
		}
		n.writes(filepath.Join(rel, file[1]), text)
	case block.Kind == "text", strings.Contains(text, "make -C spillway try"): // was done
	case strings.Contains(text, "spillway drill"):
		n.wouldRun(block)
	case text == "go run ./server\n", text == "go run .\n":
		n.starts(text)
	default:
		if got := n.types(text); !strings.Contains(got, want) {
			n.t.Errorf("%s: got %q, want %q", block, got, want)
		}
	}
}

// shell returns a shell that runs commands after the line of make try.
func (n *newcomer) shell(text string) *exec.Cmd {
	cmd := exec.Command("sh", "-ec", n.pasted+"PATH=$(go env GOPATH)/bin:$PATH\n"+text)
	cmd.Dir, cmd.Env = n.at, n.env
	return cmd
}

// types runs commands in a shell, which stays in the directory to which they change, and returns what they print.
func (n *newcomer) types(text string) string {
	n.t.Helper()
	pwd := filepath.Join(n.t.TempDir(), "pwd")
	out, err := n.shell(text + "\npwd >" + pwd).CombinedOutput()
	if err != nil {
		n.t.Fatalf("%s: %v\n%s", text, err, out)
	}
	now, err := os.ReadFile(pwd)
	if err != nil {
		n.t.Fatal(err)
	}
	n.at = strings.TrimSpace(string(now))
	return string(out)
}

// starts runs a server in the other terminal, and waits until it listens.
func (n *newcomer) starts(text string) {
	n.t.Helper()
	n.server = n.shell(text)
	n.server.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var printed strings.Builder
	n.server.Stdout, n.server.Stderr = &printed, &printed
	if err := n.server.Start(); err != nil {
		n.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = n.server.Wait()
	}()
	n.t.Cleanup(func() {
		_ = syscall.Kill(-n.server.Process.Pid, syscall.SIGKILL)
		<-ended
	})
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !n.listens() {
		select {
		case <-ended:
			n.t.Fatalf("%s: ended: %s", text, printed.String())
		case <-ticker.C:
		}
	}
}

// listens reports whether a server listens.
func (n *newcomer) listens() bool {
	c, err := net.Dial("tcp", n.address)
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

// wouldRun checks that the program was installed and has the flags of each command.
func (n *newcomer) wouldRun(block snippets.Snippet) {
	n.t.Helper()
	help := n.types("spillway drill --help")
	for _, command := range block.Commands() {
		for _, flag := range flags.FindAllString(command, -1) {
			if !strings.Contains(help, flag) {
				n.t.Errorf("%s: there is no flag %s", block, flag)
			}
		}
	}
}
