package decrypt

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
)

// maxSteps is how many steps the name of a field of flat metadata may have: the longest SOPS writes is
// key_groups__list_0__map_age__list_0__map_enc.
const maxSteps = 5

// separator stands before each step of a name but the first, and says of what kind it is.
var separator = regexp.MustCompile(`__(map|list)_`)

// node is a value, or what is below it by name or by index.
type node struct {
	value any
	named map[string]*node
	items map[int]*node
}

// unflatten is the metadata of a format that only has texts.
func unflatten(fields mapping) any {
	root := &node{}
	for _, f := range fields {
		if at := root.at(f.name); at != nil {
			at.value = f.value
		}
	}
	return root.tree()
}

// at is the node of that name, made where there is none; nil when SOPS writes no such name.
func (n *node) at(name string) *node {
	found := separator.FindAllStringSubmatchIndex(name, maxSteps)
	if len(found) >= maxSteps {
		return nil
	}
	end := len(name)
	if len(found) > 0 {
		end = found[0][0]
	}
	n = n.below(name[:end])
	for i, at := range found {
		end = len(name)
		if i+1 < len(found) {
			end = found[i+1][0]
		}
		step := name[at[1]:end]
		if name[at[2]:at[3]] == "map" {
			n = n.below(step)
			continue
		}
		index, err := strconv.Atoi(step)
		if err != nil {
			return nil
		}
		n = n.item(index)
	}
	return n
}

func (n *node) below(name string) *node {
	if n.named == nil {
		n.named = map[string]*node{}
	}
	if n.named[name] == nil {
		n.named[name] = &node{}
	}
	return n.named[name]
}

func (n *node) item(index int) *node {
	if n.items == nil {
		n.items = map[int]*node{}
	}
	if n.items[index] == nil {
		n.items[index] = &node{}
	}
	return n.items[index]
}

// tree is the node as maps and lists. Gaps in a list are left out: a file decides how wide they are.
func (n *node) tree() any {
	switch {
	case n.named != nil:
		out := make(map[string]any, len(n.named))
		for name, inner := range n.named {
			out[name] = inner.tree()
		}
		return out
	case n.items != nil:
		out := make([]any, 0, len(n.items))
		for _, index := range slices.Sorted(maps.Keys(n.items)) {
			out = append(out, n.items[index].tree())
		}
		return out
	}
	return n.value
}
