//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/seed90641741/spillway/internal/snippets"
)

// A newcomer follows docs/start.md from an empty directory, with two terminals.
type newcomer struct {
	*user

	at       string // working directory of both terminals
	checkout bool   // before the first release
	address  string // in place of the one in the document
}

// TestStart follows docs/start.md to the letter: with the released module, and with a checkout in its place. Drills are not
// run, because they take a minute.
func TestStart(t *testing.T) {
	r, proxy := published(t)
	var blocks []snippets.Snippet
	for _, s := range documents(t) {
		if s.File == snippets.Start {
			blocks = append(blocks, s)
		}
	}
	for _, checkout := range []bool{false, true} {
		n := newcomer{user: newUser(t, r, proxy), checkout: checkout, address: freeAddress(t)}
		n.at = n.dir
		if checkout {
			n.knows(r.root)
		}
		for i, block := range blocks {
			after := ""
			if i+1 < len(blocks) {
				after = blocks[i+1].Lead
			}
			n.follows(block, after)
		}
	}
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

// knows has git clone the repository from the directory root, without a network.
func (n *newcomer) knows(root string) {
	n.t.Helper()
	config := filepath.Join(n.t.TempDir(), "gitconfig")
	text := fmt.Sprintf("[safe]\n\tdirectory = *\n[url %q]\n\tinsteadOf = https://github.com/seed90641741/spillway\n", root)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
	n.env = append(n.env, "GIT_CONFIG_GLOBAL="+config, "GOWORK=") // the checkout has a workspace
}

var (
	savedAs  = regexp.MustCompile("Save this as `([^`]+)`")
	expected = regexp.MustCompile("It (?:prints|answers) `([^`]+)`")
	flags    = regexp.MustCompile(`--[a-z-]+`)
)

// follows does what a block says. The text after it has what the block prints.
func (n *newcomer) follows(block snippets.Snippet, after string) {
	n.t.Helper()
	local := strings.NewReplacer("127.0.0.1:8080", n.address)
	text, instead := local.Replace(block.Text), strings.Contains(block.Lead, "Before the first release")
	want := ""
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
	case block.Kind == "text", instead && !n.checkout:
	case strings.Contains(text, "spillway drill"):
		n.wouldRun(block)
	case strings.Contains(after, "second terminal"):
		n.starts(text, want)
	default:
		if strings.Contains(after, "Before the first release") && n.checkout {
			text, _, _ = strings.Cut(text, "go get ")
		}
		if got := n.types(text); !strings.Contains(got, want) {
			n.t.Errorf("%s: got %q, want %q", block, got, want)
		}
	}
}

// types runs commands in a shell, which stays in the directory to which they change, and returns what they print.
func (n *newcomer) types(text string) string {
	n.t.Helper()
	pwd := filepath.Join(n.t.TempDir(), "pwd")
	cmd := exec.Command("sh", "-ec", "PATH=$(go env GOPATH)/bin:$PATH\n"+text+"\npwd >"+pwd)
	cmd.Dir, cmd.Env = n.at, n.env
	out, err := cmd.CombinedOutput()
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

// starts runs a command that stays, in the other terminal, and waits until it prints a text.
func (n *newcomer) starts(text, want string) {
	n.t.Helper()
	cmd := exec.Command("sh", "-ec", text)
	cmd.Dir, cmd.Env = n.at, n.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	printed, err := cmd.StderrPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	seen := ""
	for lines := bufio.NewScanner(printed); lines.Scan(); {
		if seen += lines.Text() + "\n"; strings.Contains(seen, want) {
			go func() { _, _ = io.Copy(io.Discard, printed) }()
			return
		}
	}
	n.t.Fatalf("%s: got %q, want %q", text, seen, want)
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
