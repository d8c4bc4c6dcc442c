// Package cycle finds dependency cycles.
package cycle

import "slices"

// Graph finds the nodes that lie on cycles, with Tarjan's algorithm for strongly connected components (1972). It visits each node and each
// edge once, however many nodes are queried.
type Graph[K comparable] struct {
	edges func(K) []K
	// order numbers the nodes as they are visited, from 1. low is the lowest number that a node reaches. component is the component of a
	// node, set when the component is complete. size is the number of nodes in a component.
	order, low, component map[K]int
	size                  map[int]int
	stack                 []K
}

// New returns a graph. edges returns the nodes that a node depends on.
func New[K comparable](edges func(K) []K) *Graph[K] {
	return &Graph[K]{edges: edges, order: map[K]int{}, low: map[K]int{}, component: map[K]int{}, size: map[int]int{}}
}

// Has reports whether a node lies on a cycle.
func (g *Graph[K]) Has(node K) bool {
	g.visit(node)
	return g.size[g.component[node]] > 1 || slices.Contains(g.edges(node), node)
}

func (g *Graph[K]) visit(node K) {
	if g.order[node] != 0 {
		return
	}
	g.order[node] = len(g.order) + 1
	g.low[node] = g.order[node]
	g.stack = append(g.stack, node)
	for _, next := range g.edges(node) {
		g.visit(next)
		if g.component[next] == 0 {
			g.low[node] = min(g.low[node], g.low[next])
		}
	}
	if g.low[node] != g.order[node] {
		return
	}
	from := slices.Index(g.stack, node)
	for _, member := range g.stack[from:] {
		g.component[member] = g.order[node]
		g.size[g.order[node]]++
	}
	g.stack = g.stack[:from]
}

// Shortest returns a shortest cycle through a node that lies on one. The node is the first and the last element. The cost is a
// breadth-first search, limited to the node's component after Has(node).
func (g *Graph[K]) Shortest(node K) []K {
	cameFrom := map[K]K{}
	for queue := []K{node}; len(queue) > 0; queue = queue[1:] {
		for _, next := range g.edges(queue[0]) {
			if next == node {
				return wayTo(queue[0], node, cameFrom)
			}
			if _, seen := cameFrom[next]; !seen && g.component[next] == g.component[node] {
				cameFrom[next] = queue[0]
				queue = append(queue, next)
			}
		}
	}
	return nil
}

func wayTo[K comparable](last, node K, cameFrom map[K]K) []K {
	way := []K{node}
	for at := last; at != node; at = cameFrom[at] {
		way = append(way, at)
	}
	way = append(way, node)
	slices.Reverse(way)
	return way
}
