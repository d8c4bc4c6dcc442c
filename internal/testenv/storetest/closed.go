package storetest

import (
	"reflect"
	"strings"
	"testing"

	"github.com/kubeop/kubeop/internal/store"
)

// everyCallFails calls each method of a closed store. One that returns no error would answer that there is nothing, or that something was written.
func everyCallFails(t *testing.T, s store.Store) {
	t.Helper()
	methods := reflect.TypeFor[store.Store]()
	for i := range methods.NumMethod() {
		method := methods.Method(i)
		if method.Name == "Close" || method.Name == "Lead" { // A store for one manager always leads.
			continue
		}
		arguments := []reflect.Value{reflect.ValueOf(t.Context())}
		for j := 1; j < method.Type.NumIn(); j++ {
			arguments = append(arguments, argument(method.Type.In(j)))
		}
		results := reflect.ValueOf(s).MethodByName(method.Name).Call(arguments)
		if err, _ := results[len(results)-1].Interface().(error); err == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("%s of a closed store: %v", method.Name, err)
		}
	}
}

// argument returns a value for a parameter: a list of one, so that there is something to write, and else the zero value.
func argument(of reflect.Type) reflect.Value {
	if of.Kind() == reflect.Slice {
		return reflect.MakeSlice(of, 1, 1)
	}
	return reflect.Zero(of)
}
