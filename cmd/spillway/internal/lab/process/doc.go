// Package process starts the backend of a drill, and the proxy in front of it, as child
// processes of this program. They end with it. A proxy tells its parent with the message [Ready] that it
// accepts connections.
package process

// GCPercent makes garbage collection in all processes of a drill less frequent than by default;
// none uses much memory.
const GCPercent = 400
