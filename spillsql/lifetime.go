package spillsql

import (
	"database/sql"
	"reflect"
	"sync"
	"time"
)

// lifetimeOf returns a func that returns what SetConnMaxLifetime has set on db. While callers queue, a
// connection changes hands each time it is returned, and is new for database/sql, which alone knows for
// how long a connection may be open. It has no method that tells it, so its fields are read. Nil means a
// database/sql that has other fields: then the time counts from the last change of hands.
func lifetimeOf(db *sql.DB) func() time.Duration {
	fields := reflect.ValueOf(db).Elem()
	mu, lifetime := fields.FieldByName("mu"), fields.FieldByName("maxLifetime")
	if !is[sync.Mutex](mu) || !is[time.Duration](lifetime) {
		return nil
	}
	lock := (*sync.Mutex)(mu.Addr().UnsafePointer())
	return func() time.Duration {
		lock.Lock()
		defer lock.Unlock()
		return time.Duration(lifetime.Int())
	}
}

// is reports whether v is a T.
func is[T any](v reflect.Value) bool { return v.IsValid() && v.Type() == reflect.TypeFor[T]() }
