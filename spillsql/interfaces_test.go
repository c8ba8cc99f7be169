package spillsql

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// What a driver may have, ours has: all interfaces of package driver in this version of Go. One that
// is new fails here.
func TestInterfacesOfThisVersionOfGo(t *testing.T) {
	ours := map[string][]reflect.Type{
		"Connector": {reflect.TypeFor[*Connector]()},
		"Conn":      {reflect.TypeFor[fullConn](), reflect.TypeFor[*conn]()},
		"Stmt":      {reflect.TypeFor[*stmt](), reflect.TypeFor[convertingStmt]()},
		"Rows":      {reflect.TypeFor[*rows]()},
		"Tx":        {reflect.TypeFor[*tx]()},

		"ExecerContext": {reflect.TypeFor[fullConn](), reflect.TypeFor[execConn]()}, "QueryerContext": {reflect.TypeFor[fullConn](), reflect.TypeFor[queryConn]()},
		"NamedValueChecker": {reflect.TypeFor[*conn](), reflect.TypeFor[*stmt]()}, "ColumnConverter": {reflect.TypeFor[convertingStmt]()},
		"Pinger": {reflect.TypeFor[*conn]()}, "SessionResetter": {reflect.TypeFor[*conn]()}, "Validator": {reflect.TypeFor[*conn]()},
	}
	others := map[string]bool{
		"Driver": true, "DriverContext": true, "Result": true, "ValueConverter": true, "Valuer": true, // the driver's own
		"Execer": true, "Queryer": true, // database/sql prefers those with a context
	}
	for name, methods := range driverInterfaces(t) {
		types := ours[name]
		for _, prefix := range []string{"Conn", "Stmt", "Rows"} {
			if types == nil && strings.HasPrefix(name, prefix) {
				types = ours[prefix]
			}
		}
		if types == nil && !others[name] {
			t.Errorf("driver.%s is unknown", name)
		}
		for _, of := range types {
			for _, method := range methods {
				if _, has := of.MethodByName(method); !has {
					t.Errorf("%v has no %s of driver.%s", of, method, name)
				}
			}
		}
	}
}

// driverInterfaces returns the methods of the exported interfaces of package driver.
func driverInterfaces(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(runtime.GOROOT(), "src/database/sql/driver/*.go")) //nolint:staticcheck // of the Go that runs the test
	if err != nil || len(files) == 0 {
		t.Skip("the source of Go is not here")
	}
	found := make(map[string][]string)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !spec.Name.IsExported() {
				return true
			}
			if in, ok := spec.Type.(*ast.InterfaceType); ok {
				for _, method := range in.Methods.List {
					for _, m := range method.Names {
						found[spec.Name.Name] = append(found[spec.Name.Name], m.Name)
					}
				}
			}
			return false
		})
	}
	if len(found) < 20 {
		t.Errorf("%d interfaces found", len(found))
	}
	return found
}
