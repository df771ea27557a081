// Package node holds the commands that ask for nodes and give them back.
package node
