// Package chartvalues merges values of charts.
package chartvalues

import "maps"

// Merge merges over into base and changes neither. It merges as Helm does: mappings key by key, at any depth; other values, including lists,
// are replaced. A null replaces too and stays null, because over the chart's own values it removes the key.
func Merge(base, over map[string]any) map[string]any {
	merged := maps.Clone(base)
	for key, value := range over {
		above, isMap := value.(map[string]any)
		below, both := merged[key].(map[string]any)
		if isMap && both {
			value = Merge(below, above)
		}
		merged[key] = value
	}
	return merged
}
