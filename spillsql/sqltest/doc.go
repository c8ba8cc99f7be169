// Package sqltest tests package spillsql with drivers and databases that people use:
// PostgreSQL with pgx, SQLite, and the errors of the MySQL driver. It has no code but tests,
// and is a module so that spillsql needs none of them.
package sqltest
