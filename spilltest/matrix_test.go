package spilltest_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/seed90641741/spillway/spilltest"
)

var matrix = flag.Bool("matrix", false, "run the promises of all adapters, which takes a minute to compile, and print which adapter keeps which")

// adapters are the packages that test promises.
var adapters = []string{
	"spillaws/awstest", "spillconnect", "spillgrpc", "spillhttp", "spillmongo/mongotest/suite", "spillredis", "spillrueidis", "spillsql",
	"spillxds",
}

// Each adapter says of each promise that it keeps it, or why there is nothing to keep:
//
//	go test ./spilltest -run Matrix -v -matrix
func TestMatrix(t *testing.T) {
	for _, adapter := range adapters {
		if files, err := filepath.Glob("../" + adapter + "/*promises_test.go"); err != nil || len(files) == 0 {
			t.Errorf("%s tests no promises: %v", adapter, err)
		}
	}
	if !*matrix {
		t.Skip("with -matrix it runs them")
	}
	rows, reasons := run(t)
	var table strings.Builder
	write(&table, rows)
	t.Log(table.String() + strings.Join(reasons, "\n"))
	if len(rows) < len(adapters) {
		t.Errorf("only %d adapters", len(rows))
	}
	for adapter, row := range rows {
		for _, promise := range promises() {
			if verdict := row[promise]; verdict != "kept" && verdict != "-" {
				t.Errorf("%s of %s: %q", promise, adapter, verdict)
			}
		}
	}
}

func promises() (names []string) {
	for f := range reflect.TypeFor[spilltest.Promises]().Fields() {
		names = append(names, f.Name)
	}
	return names
}

// verdicts are the words of the table for what go test says.
var verdicts = map[string]string{"pass": "kept", "skip": "-", "fail": "BROKEN"}

// run returns a verdict on each promise of each adapter, and why some have nothing to keep.
func run(t *testing.T) (rows map[string]map[string]string, reasons []string) {
	t.Helper()
	args := []string{"test", "-count", "1", "-json", "-run", "^TestPromises"}
	for _, adapter := range adapters {
		args = append(args, "./"+adapter)
	}
	command := exec.Command("go", args...)
	command.Dir, command.Stderr = "..", os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Errorf("go test: %v", err)
	}
	rows = map[string]map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var e struct{ Action, Package, Test, Output string }
		if err := d.Decode(&e); err == io.EOF {
			return rows, reasons
		} else if err != nil {
			t.Fatal(err)
		}
		test, promise, ok := strings.Cut(e.Test, "/")
		if !ok || strings.Contains(promise, "/") {
			continue
		}
		name := strings.TrimSuffix(path.Base(ofTests.Replace(e.Package))+" "+strings.TrimPrefix(strings.TrimPrefix(test, "TestPromises"), "Of"), " ")
		if _, reason, ok := strings.Cut(e.Output, " promises.go:"); ok {
			_, reason, _ = strings.Cut(strings.TrimSpace(reason), ": ")
			reasons = append(reasons, name+", "+promise+": "+reason)
		}
		if verdict := verdicts[e.Action]; verdict != "" {
			if rows[name] == nil {
				rows[name] = map[string]string{}
			}
			rows[name][promise] = verdict
		}
	}
}

// ofTests removes what packages add that only test an adapter.
var ofTests = strings.NewReplacer("/mongotest/suite", "", "/awstest", "")

func write(w io.Writer, rows map[string]map[string]string) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\nadapter\t%s\n", strings.Join(promises(), "\t"))
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprint(table, name)
		for _, promise := range promises() {
			fmt.Fprint(table, "\t", rows[name][promise])
		}
		fmt.Fprintln(table)
	}
	table.Flush()
}
