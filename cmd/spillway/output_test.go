package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// broken is an output that cannot be written to, such as a full disk.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestFilesAreWrittenWithoutStdout: a result whose standard output cannot be written is in its files.
func TestFilesAreWrittenWithoutStdout(t *testing.T) {
	file := filepath.Join(t.TempDir(), "list.json")
	var stderr bytes.Buffer
	status := run(t.Context(), []string{"sim", "list", "--json-file=" + file}, broken{}, &stderr)
	if status != exitEnvironment || !strings.Contains(stderr.String(), "no space left") {
		t.Errorf("exit status %d: %s", status, stderr.String())
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "retry-growth") {
		t.Errorf("the file has %q, %v", text, err)
	}
}

// TestResultIsShownWithoutFiles: a file that cannot be written does not hide the result.
func TestResultIsShownWithoutFiles(t *testing.T) {
	status, stdout, stderr := spill(t, "sim", "list", "--json-file="+t.TempDir())
	if status != exitUsage || !strings.Contains(stdout, "retry-growth") || !strings.Contains(stderr, "--json-file cannot be written") {
		t.Errorf("exit status %d, %q, %q", status, stdout, stderr)
	}
}

// TestInterruptedSimulation: an interrupt is no wrong usage, and leaves no empty files that look like results.
func TestInterruptedSimulation(t *testing.T) {
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "x.json"), filepath.Join(dir, "x.html")}
	measured := filepath.Join("internal", "lab", "prediction", "testdata", "drill-both.json")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{
		{"sim", "retry-growth", "--quick", "--json-file=" + files[0], "--report=" + files[1]},
		{"sim", "drill", measured, "--json-file=" + files[0]},
	} {
		if status := run(ctx, args, io.Discard, io.Discard); status != exitInterrupted {
			t.Errorf("%v: exit status %d, want %d", args, status, exitInterrupted)
		}
		for _, file := range files {
			if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%v: %s exists", args, file)
			}
		}
	}
}

// TestFilesKeepTheirContentUntilThen: a result of before is there until the next one is.
func TestFilesKeepTheirContentUntilThen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.json")
	if err := os.WriteFile(file, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	run(ctx, []string{"sim", "retry-growth", "--quick", "--json-file=" + file}, io.Discard, io.Discard)
	if text, err := os.ReadFile(file); err != nil || string(text) != "before" {
		t.Errorf("%q, %v", text, err)
	}
}
