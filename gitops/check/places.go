package check

import (
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// maxDepth is how deep a field is searched below objects that the document does not have: spec.image.replicas has the depth 2.
const maxDepth = 2

// maxPlaces is in how many places a field may be meant; a hint at more of them helps nobody.
const maxPlaces = 2

// places returns where the schema of the kind has a field of a name, such as spec.image.replicas for replicas: the outermost such fields, and
// of these only those of objects that the document has, if there are any. It returns none if there are more than maxPlaces.
func (d *Result) places(name string) []string {
	if d.schema == nil {
		return nil
	}
	// People write a spec, and neither metadata nor a status by the names of fields.
	level := map[string]schema.Structural{"spec": d.schema.Properties["spec"]}
	for depth := 1; len(level) > 0; depth++ {
		found := named(level, name)
		written := slices.DeleteFunc(slices.Clone(found), func(at string) bool { return !has(d.Value, parent(at)) })
		if len(written) > 0 || depth > maxDepth {
			found = written
		}
		switch {
		case len(found) > maxPlaces:
			return nil
		case len(found) > 0:
			return found
		}
		level = inside(level)
	}
	return nil
}

// named returns the fields of a name that are directly in the objects of one level, sorted.
func named(level map[string]schema.Structural, name string) (found []string) {
	for path, s := range level {
		for key := range s.Properties {
			if strings.EqualFold(key, name) {
				found = append(found, path+"."+key)
			}
		}
	}
	slices.Sort(found)
	return found
}

// inside returns the next level: the fields of objects, and the items of lists.
func inside(level map[string]schema.Structural) map[string]schema.Structural {
	next := map[string]schema.Structural{}
	for path, s := range level {
		for key, property := range s.Properties {
			next[path+"."+key] = property
		}
		if s.Items != nil {
			next[path+"[]"] = *s.Items
		}
	}
	return next
}

// has reports whether a document has an object at a path such as spec.image; where the path passes a list, whether the list is there.
func has(value any, path string) bool {
	for path != "" {
		var key string
		key, path, _ = strings.Cut(path, ".")
		name, ofList := strings.CutSuffix(key, "[]")
		object, _ := value.(map[string]any)
		var is bool
		if value, is = object[name]; !is || ofList {
			return is
		}
	}
	return true
}
