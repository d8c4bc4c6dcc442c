package v1alpha1_test

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// TestTheTableOfImageFieldsIsComplete compares the tables in docs/image.md with the API: each field of an image, and each field of the app
// that an image is served by, has one row of three cells, which names all fields below it. No row is of a field that the API lacks.
func TestTheTableOfImageFieldsIsComplete(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "image.md"))
	if err != nil {
		t.Fatal(err)
	}
	for heading, of := range map[string]map[string]reflect.Type{
		"| field of `image` | what it becomes | default |\n|---|---|---|\n": fieldsOf(reflect.TypeFor[v1alpha1.ImageSource]()),
		"| field of the app | what it becomes | default |\n|---|---|---|\n": servingFields(),
	} {
		_, table, found := strings.Cut(string(page), heading)
		if !found {
			t.Fatalf("docs/image.md has no table %q", heading)
		}
		table, _, _ = strings.Cut(table, "\n\n")
		rows := rowsOf(t, table)
		for field := range rows {
			if of[field] == nil {
				t.Errorf("docs/image.md has a row of %s, which the API does not have", field)
			}
		}
		for field, typed := range of {
			if rows[field] == "" {
				t.Errorf("docs/image.md has no row of %s", field)
				continue
			}
			for _, below := range namesBelow(typed) {
				if !strings.Contains(rows[field], "`"+below+"`") {
					t.Errorf("the row of %s in docs/image.md does not name its field %s", field, below)
				}
			}
		}
	}
}

// servingFields are the fields of an app that say how an image is served.
func servingFields() map[string]reflect.Type {
	all, of := fieldsOf(reflect.TypeFor[v1alpha1.AppSpec]()), map[string]reflect.Type{}
	for _, name := range []string{"host", "hosts", "ingress"} {
		of[name] = all[name]
	}
	return of
}

// rowsOf returns the rows of a table by the field in their first cell.
func rowsOf(t *testing.T, table string) map[string]string {
	t.Helper()
	rows := map[string]string{}
	for row := range strings.SplitSeq(strings.TrimSpace(table), "\n") {
		cells := strings.Split(strings.Trim(row, "|"), " | ")
		if len(cells) != 3 {
			t.Errorf("%q has %d cells, want 3", row, len(cells))
			continue
		}
		field := strings.Trim(cells[0], " `")
		if rows[field] != "" {
			t.Errorf("docs/image.md has two rows of %s", field)
		}
		rows[field] = row
	}
	return rows
}

// fieldsOf returns the types of the fields of a struct by their names in JSON.
func fieldsOf(of reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.Anonymous && name != "" {
			fields[name] = field.Type
		}
	}
	return fields
}

// namesBelow returns the names of all fields below a type, as far as the types are of this API; the others are Kubernetes'.
func namesBelow(of reflect.Type) []string {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of.PkgPath() != reflect.TypeFor[v1alpha1.App]().PkgPath() {
		return nil
	}
	var names []string
	for name, typed := range fieldsOf(of) {
		names = append(names, name)
		if typed != reflect.TypeFor[v1alpha1.Probes]() { // The row of probes names the fields for all containers.
			names = append(names, namesBelow(typed)...)
		}
	}
	return names
}
