package schematest

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"

	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
)

var proxy = schema{
	title: "Configuration of spillway proxy", of: &config.Config{}, file: "gateway/config/schema.json", text: config.Schema,
	types: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[config.Mode]():  oneOf("off", "observe", "enforce"),
		reflect.TypeFor[config.Class](): oneOf("CRITICAL_PLUS", "CRITICAL", "SHEDDABLE_PLUS", "SHEDDABLE"),
	},
}

var quota = schema{
	title: "Configuration of spillway quota", of: &config.QuotaServer{}, file: "gateway/config/quotaserver.json", text: config.QuotaSchema,
}

func TestSchemaOfTheProxy(t *testing.T) { proxy.agrees(t) }

func TestSchemaOfTheServiceOfQuotas(t *testing.T) { quota.agrees(t) }

// read returns the text of a file.
func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestGoodAndBadFiles: the schemas find in files what is wrong with them.
func TestGoodAndBadFiles(t *testing.T) {
	full := read(t, internal+"gateway/config/testdata/good/full.yaml")
	served := read(t, internal+"gateway/config/testdata/quota.yaml")
	for _, row := range []struct {
		of       schema
		from, to string // in the file that is good
	}{
		{proxy, full, "mode: observe\n"},
		{proxy, "max_in_flight:", "max_in_flights:"},
		{proxy, "rate: 500", "rate: many"},
		{proxy, "drain_timeout: 10s", "drain_timeout: soon"},
		{proxy, "mode: enforce", "mode: on"},
		{proxy, "boundary: internal", "boundary: inside"},
		{quota, "customers:", "customer:"},
	} {
		good := map[string]string{proxy.file: full, quota.file: served}[row.of.file]
		valid := row.of.valid(t)
		if err := valid(good); err != nil {
			t.Errorf("%v:\n%s", err, good)
		}
		if bad := strings.Replace(good, row.from, row.to, 1); bad == good || valid(bad) == nil {
			t.Errorf("valid:\n%s", bad)
		}
	}
}

// TestFormat: the schema knows good files, and what the program writes of them.
func TestFormat(t *testing.T) {
	valid := proxy.valid(t)
	all, err := filepath.Glob(internal + "gateway/config/testdata/good/*.yaml")
	if err != nil || len(all) < 5 {
		t.Fatal(err, all)
	}
	for _, name := range all {
		text := read(t, name)
		c, err := config.Parse(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		written, err := config.Format(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{text, string(written)} {
			if err := valid(text); err != nil {
				t.Errorf("%s: %v:\n%s", name, err, text)
			}
		}
	}
}
